//! A queue whose messages are rows of a table: on every backend.
//!
//! When a message is due stands in its RowKey, so that a receiver reads what is due and never what
//! is hidden. To take a message is to move its row, in one transaction, so that one of several
//! wins. The steps are written down in `docs/queues.md`.

pub(crate) mod guard;
pub(crate) mod letter;
pub(crate) mod receive;
pub(crate) mod update;
pub(crate) mod table_queue;

pub use guard::QueueGuard;
pub use table_queue::TableQueue;
