//! The port to a queue of messages: the trait [`Queue`], and the messages that it returns.
//!
//! A queue transports texts and does not interpret them.

mod port;
mod received;
mod checks;

pub use checks::{check_duration, check_name, lease_lost_error};
pub use port::{LONGEST, Queue, QueueCapabilities};
pub use received::{Poison, Received};
