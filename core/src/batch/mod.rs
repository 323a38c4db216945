//! Defines writes: a single operation, or several as one entity group transaction.

mod deadline;
pub(crate) mod operation;
mod entity_group;

pub use deadline::Deadline;
pub use entity_group::{Batch, Written};
pub use operation::{Condition, Operation, Verb};
