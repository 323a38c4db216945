//! Defines writes: a single operation, or several as one entity group transaction.

mod operation;
mod entity_group;

pub use entity_group::{Batch, Written};
pub use operation::{Condition, Operation, Verb};
