//! What to read and what to write: rows to rows, pure.
//!
//! A verb of the caller becomes a [`Change`]; with what was read, a change has an [`Effect`]; the
//! effects of one entity group transaction are folded, row by row, into its operations.

pub(crate) mod change;
pub(crate) mod holder;
pub(crate) mod planned;
pub(crate) mod list;
pub(crate) mod moves;
pub(crate) mod outbox;
pub(crate) mod key_conditions;
pub(crate) mod size;
#[cfg_attr(not(feature = "encrypt"), allow(dead_code, reason = "used where rows are sealed"))]
pub(crate) mod tokens;
pub(crate) mod transaction_plan;
pub(crate) mod untyped;
pub(crate) mod verbs;

pub(crate) use change::{Change, Effect};
pub(crate) use holder::Holders;
pub(crate) use key_conditions::key_conditions;
pub(crate) use list::{
    Ids, ListDelta, MARKER as LIST_MARKER, StoredList, head_key, ids_in, ids_of, spill_bounds,
};
pub(crate) use planned::Home;
pub(crate) use size::hidden;
#[cfg(feature = "encrypt")]
pub(crate) use tokens::BITS;
pub(crate) use tokens::Tokens;
pub(crate) use transaction_plan::{Role, TransactionPlan, list_deltas};
pub(crate) use untyped::{delete_row, insert_or_replace_row, insert_row, replace_row, same_keys};
pub(crate) use verbs::{
    delete, delete_at, insert, insert_or_merge, insert_or_replace, patch, patch_at, replace,
    replace_any, replace_by,
};
