//! Plans the verbs on rows without a declared type: one operation each, without a read.

use super::{Change, Effect};
use crate::{
    batch::{Condition, Operation},
    entity::{DynamicEntity, Stored},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// Plans to replace an untyped row under the ETag that was read.
///
/// # Errors
///
/// Fails with `is_invalid` if the keys of the entity changed.
pub(crate) fn replace_row<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<Change> {
    refuse_changed_keys(stored, entity)?;
    let row = entity.row_to_replace()?;
    let replace = Operation::replace(row.clone(), Condition::unchanged(stored.row())?);
    Ok(on_row(replace, Some(row)))
}

/// Refuses an untyped entity whose keys were changed after it was read. Its type is unknown, and so are the rows
/// that its keys derive, which makes a rename impossible.
pub(crate) fn refuse_changed_keys<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<()> {
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

/// Plans the insertion of an untyped row.
pub(crate) fn insert_row(row: Row) -> Change {
    on_row(Operation::insert(row.clone()), Some(row))
}

/// Plans to insert an untyped row or replace the stored one.
pub(crate) fn insert_or_replace_row(row: Row) -> Change {
    on_row(Operation::insert_or_replace(row.clone()), Some(row))
}

/// Plans the deletion of an untyped row under the ETag that was read.
pub(crate) fn delete_row<S>(stored: &Stored<S>) -> Result<Change> {
    let (partition_key, row_key) = (stored.partition_key(), stored.row_key());
    let guard = Condition::unchanged(stored.row())?;
    let delete = Operation::delete(partition_key, row_key, guard)?;
    Ok(on_row(delete, None))
}

fn on_row(operation: Operation, row: Option<Row>) -> Change {
    Change::from_effect(Effect::on_primary(None, operation, row))
}
