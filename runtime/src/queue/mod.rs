//! Queues: the port behind which messages wait, and what stands behind it.
//!
//! A queue moves texts and knows nothing of what is in them; [`MessageQueue`] writes and reads
//! messages of the program's own types through any of them.

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
pub(crate) use server_clock::ServerClock;
pub use table::{QueueGuard, TableQueue};
pub use typed::MessageQueue;
