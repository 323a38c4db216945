//! Queues of messages: the trait [`Queue`], its implementations, and [`MessageQueue`] for typed
//! messages.
//!
//! A queue transports texts and does not interpret them.
//!
//! ```
//! use std::time::Duration;
//! use entable::{Client, Queue};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let client = Client::memory();
//! let queue = client.queue("letters");
//! let queue = queue.port();
//! queue.send("hello", Duration::ZERO).await?;
//! let received = queue.receive(1, Duration::from_secs(30)).await?;
//! assert_eq!((received[0].body(), received[0].dequeue_count()), ("hello", 1));
//! queue.delete(&received[0]).await?;
//! assert!(queue.delete(&received[0]).await.unwrap_err().is_lease_lost());
//! # Ok::<(), entable::Error>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod envelope;
pub(crate) mod typed;
pub(crate) mod table;

#[cfg(feature = "azure-queue")]
pub use entable_azure::AzureQueue;
pub use entable_core::queue::*;
pub(crate) use envelope::{Envelope, Receipts};
pub use table::TableQueue;
pub use typed::MessageQueue;
