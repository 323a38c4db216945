//! What to read and what to write: rows to rows, pure.
//!
//! A verb of the caller becomes a [`Change`]; with what was read, a change has an [`Effect`]; the
//! effects of one entity group transaction are folded, row by row, into its operations.

mod change;
mod holder;
mod home;
mod list;
pub(crate) mod moving;
pub(crate) mod outbox;
mod read;
mod size;
#[cfg_attr(not(feature = "encrypt"), allow(dead_code, reason = "used where rows are sealed"))]
mod tokens;
mod transaction;
mod untyped;
mod write;

pub(crate) use change::{Change, Effect};
pub(crate) use holder::Holders;
pub(crate) use home::Home;
pub(crate) use list::{
    Ids, ListDelta, MARKER as LIST_MARKER, StoredList, head_key, ids_in, ids_of, spill_bounds,
};
pub(crate) use read::key_conditions;
pub(crate) use size::hidden;
#[cfg(feature = "encrypt")]
pub(crate) use tokens::BITS;
pub(crate) use tokens::Tokens;
pub(crate) use transaction::{Role, TransactionPlan, list_deltas};
pub(crate) use untyped::{delete_row, insert_or_replace_row, insert_row, replace_row, same_keys};
pub(crate) use write::{
    delete, delete_at, insert, insert_or_merge, insert_or_replace, patch, patch_at, replace,
    replace_any, replace_by,
};
