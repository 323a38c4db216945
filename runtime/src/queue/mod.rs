//! Queues of messages: the trait [`Queue`], its implementations, and [`MessageQueue`] for typed
//! messages.
//!
//! A queue transports texts and does not interpret them.

pub(crate) mod port;
pub(crate) mod envelope;
pub(crate) mod received;
pub(crate) mod typed;
pub(crate) mod server_clock;
pub(crate) mod table;
#[cfg(feature = "azure-queue")]
pub(crate) mod azure;

#[cfg(feature = "azure-queue")]
pub use azure::AzureQueue;
pub(crate) use envelope::{Envelope, Receipts};
pub use port::{LONGEST, Queue, QueueCapabilities};
pub use received::{Poison, Received};
pub(crate) use server_clock::{ServerClock, earlier_time, later_time};
pub use table::TableQueue;
pub use typed::MessageQueue;
