//! A queue whose messages are rows of a table, on every backend.
//!
//! A message's RowKey contains the time when it becomes visible, so a receiver reads visible
//! messages and skips hidden ones. A receiver takes a message by replacing its row in one
//! transaction, so only one of several receivers succeeds. `docs/queues.md` specifies the steps.

pub(crate) mod message_row;
pub(crate) mod table_queue;
mod receive;
mod update;
mod queue_impl;

pub use table_queue::TableQueue;
