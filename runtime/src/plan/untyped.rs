//! Verbs on rows without a declared type: one operation each.

use super::{Change, Effect};
use crate::{
    batch::{Condition, Operation},
    entity::Stored,
    error::Result,
    row::Row,
};

/// Put the row of an entity without a type in place of the version that was read.
pub(crate) fn replace_row<S>(stored: &Stored<S>, row: Row) -> Change {
    let replace = Operation::replace(row.clone(), Condition::Match(stored.etag()));
    Change::ready(Effect::alone(None, replace, Some(row)))
}

/// Create the row of an entity without a type.
pub(crate) fn insert_row(row: Row) -> Change {
    Change::ready(Effect::alone(None, Operation::insert(row.clone()), Some(row)))
}

/// Create the row of an entity without a type, or put it in place of what is there.
pub(crate) fn upsert_row(row: Row) -> Change {
    Change::ready(Effect::alone(None, Operation::insert_or_replace(row.clone()), Some(row)))
}

/// Delete the row of an entity without a type, in the version that was read.
pub(crate) fn delete_row<S>(stored: &Stored<S>) -> Result<Change> {
    let (partition_key, row_key) = (stored.partition_key(), stored.row_key());
    let guard = Condition::Match(stored.etag());
    let delete = Operation::delete(partition_key, row_key, guard)?;
    Ok(Change::ready(Effect::alone(None, delete, None)))
}
