//! Layers: backends around a backend.

mod fault;
mod record;

pub use fault::{Fault, On, Trouble};
pub use record::{Recorder, Request};
