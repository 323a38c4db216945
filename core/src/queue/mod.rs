//! The port to a queue of messages: the trait [`Queue`], and the messages that it returns.
//!
//! A queue transports texts and does not interpret them.

mod port;
mod received;

pub use port::{LONGEST, Queue, QueueCapabilities};
pub use received::{Poison, Received};
