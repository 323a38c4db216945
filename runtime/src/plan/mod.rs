//! What to read and what to write: rows to rows, pure.
//!
//! A verb of the caller becomes a [`Change`]; with what was read, a change has an [`Effect`]; the
//! effects of one entity group transaction are folded, row by row, into its operations.

mod change;
mod holder;
mod list;
pub(crate) mod moving;
pub(crate) mod outbox;
mod read;
mod transaction;
mod write;

pub(crate) use change::{Change, Effect};
pub(crate) use holder::Holders;
pub(crate) use list::{
    ListDelta, MARKER as LIST_MARKER, StoredList, head_key, ids_in, spill_bounds,
};
pub(crate) use read::key_conditions;
pub(crate) use transaction::{Role, Transaction, list_deltas};
pub(crate) use write::{
    delete, delete_at, delete_row, insert, insert_row, patch, replace, replace_any, replace_by,
    replace_row, same_keys, upsert, upsert_merge, upsert_row,
};
