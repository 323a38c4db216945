//! Verbs on rows without a declared type: one operation each.

use super::{Change, Effect};
use crate::{
    batch::{Condition, Operation},
    entity::{DynamicEntity, Stored},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// Put an entity without a type in place of the version that was read.
pub(crate) fn replace_row<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<Change> {
    same_keys(stored, entity)?;
    let row = entity.to_row()?;
    let replace = Operation::replace(row.clone(), Condition::Match(stored.etag()));
    Ok(Change::ready(Effect::alone(None, replace, Some(row))))
}

/// An entity without a type is written back where it was read: nothing says what else its keys
/// stand in.
pub(crate) fn same_keys<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<()> {
    if (stored.partition_key(), stored.row_key()) == (entity.partition_key(), entity.row_key()) {
        return Ok(());
    }
    let message = format!(
        "the keys changed to (`{}`, `{}`); insert the entity there, and delete this one",
        entity.partition_key().escape_debug(),
        entity.row_key().escape_debug()
    );
    Err(Error::new(ErrorKind::Invalid, message).at_keys(stored.partition_key(), stored.row_key()))
}

/// Create the row of an entity without a type.
pub(crate) fn insert_row(row: Row) -> Change {
    Change::ready(Effect::alone(None, Operation::insert(row.clone()), Some(row)))
}

/// Create the row of an entity without a type, or put it in place of what is there.
pub(crate) fn insert_or_replace_row(row: Row) -> Change {
    Change::ready(Effect::alone(None, Operation::insert_or_replace(row.clone()), Some(row)))
}

/// Delete the row of an entity without a type, in the version that was read.
pub(crate) fn delete_row<S>(stored: &Stored<S>) -> Result<Change> {
    let (partition_key, row_key) = (stored.partition_key(), stored.row_key());
    let guard = Condition::Match(stored.etag());
    let delete = Operation::delete(partition_key, row_key, guard)?;
    Ok(Change::ready(Effect::alone(None, delete, None)))
}
