//! What to read and what to write: rows to rows, pure.

mod read;
mod write;

pub(crate) use read::key_conditions;
pub(crate) use write::{Rekeyed, bag_row, patched, prepared, rekeyed, replacement};
