//! Layers: backends around a backend.

mod fault;
mod record;
mod retry;

pub use fault::{Fault, On, Trouble};
pub use record::{Recorder, Request};
pub use retry::{Retry, RetryPolicy};
