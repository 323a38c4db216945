//! Plans reads and writes: from rows to rows, without requests.
//!
//! A caller's verb becomes a [`Change`]. Together with the stored primary, if needed, the change yields an
//! [`Effect`]. The effects of one entity group transaction are combined row by row into its operations.
//!
//! A file uses only files whose `mod` lines come before its own.

pub(crate) mod tokens;
pub(crate) mod list;
pub(crate) mod planned;
pub(crate) mod wide;
pub(crate) mod size;
mod key_prefix;
pub(crate) mod key_conditions;
pub(crate) mod derive;
pub(crate) mod move_mark;
pub(crate) mod effect;
pub(crate) mod outbox;
pub(crate) mod moves;
mod verb;
pub(crate) mod change;
pub(crate) mod typed_verbs;
pub(crate) mod untyped;
pub(crate) mod transaction_plan;

pub(crate) use change::{Change, EffectOrVerb};
pub(crate) use effect::Effect;
pub(crate) use key_conditions::rewrite_key_conditions;
pub(crate) use list::{
    IdForm, ListDelta, StoredList, first_and_last_spill_key, read_ids_of_row, read_row_keys,
};
pub(crate) use planned::{OperationRole, StoredAs};
pub(crate) use size::hidden_nulls;
pub(crate) use tokens::TOKEN_CHARACTER_BITS;
pub(crate) use tokens::blind_token_scope;
pub(crate) use tokens::{TokenMaker, TokenScope};
pub(crate) use transaction_plan::{
    ChangedList, RowsRead, TransactionPlan, list_deltas, row_written_twice_error,
};
pub(crate) use typed_verbs::{
    delete, delete_at, deletion_effect, insert, insert_or_merge, insert_or_replace, patch,
    patch_at, replace, replace_any_version, replace_row_by_entity, replacement_effect, update,
};
pub(crate) use untyped::{
    delete_row, insert_or_replace_row, insert_row, refuse_changed_keys, replace_row,
};
