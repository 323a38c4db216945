//! An entity as the row that is written.

use crate::{
    batch::{Condition, Operation},
    edm::Bag,
    entity::{Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// The entity's row, after the user's own `validate`.
pub(crate) fn prepared<E: TableEntity>(entity: &E) -> Result<Row> {
    if let Err(reason) = entity.check() {
        let message = format!("`{}` was not accepted: {reason}", E::SCHEMA.entity);
        return Err(Error::new(ErrorKind::Rejected, message).with_source(reason));
    }
    entity.to_row()
}

/// What a replace has to write where the entity's keys changed since it was read.
pub(crate) enum Rekeyed {
    /// The keys are as they were.
    Same(Operation),
    /// The RowKey changed: remove the old row, create the new one.
    Moved([Operation; 2]),
}

/// The replacement of a stored entity, guarded by the version that was read.
pub(crate) fn rekeyed<E: TableEntity>(stored: &Stored<E>) -> Result<Rekeyed> {
    let row = prepared::<E>(stored)?;
    let guard = Condition::Match(stored.etag());
    let (old_partition, old_row) = (stored.partition_key(), stored.row_key());
    if row.partition_key() != old_partition {
        let message = format!(
            "the PartitionKey changed from `{}` to `{}`, and no transaction spans two partitions; use `move_to`",
            old_partition.escape_debug(),
            row.partition_key().escape_debug()
        );
        return Err(Error::new(ErrorKind::Invalid, message).at_keys(old_partition, old_row));
    }
    if row.row_key() == old_row {
        return Ok(Rekeyed::Same(Operation::replace(row, guard)));
    }
    let delete = Operation::delete(old_partition, old_row, guard)?;
    Ok(Rekeyed::Moved([delete, Operation::insert(row)]))
}

/// The replacement of a stored entity whose keys have to be as they were.
pub(crate) fn replacement<E: TableEntity>(stored: &Stored<E>) -> Result<Operation> {
    match rekeyed(stored)? {
        Rekeyed::Same(operation) => Ok(operation),
        Rekeyed::Moved(_) => {
            let message = "a bulk update cannot change keys; use `update`, or delete and insert";
            let error = Error::new(ErrorKind::Invalid, message);
            Err(error.at_keys(stored.partition_key(), stored.row_key()))
        }
    }
}

/// A row with some properties set and others removed.
pub(crate) fn patched(row: &Row, set: &Bag, removed: &[&str]) -> Result<Row> {
    let mut bag = row.to_bag()?;
    for (name, value) in set.iter() {
        bag.set(name, value.clone());
    }
    for name in removed {
        bag.remove(name);
    }
    bag_row(row.partition_key(), row.row_key(), &bag)
}

/// A row of a bag's properties.
pub(crate) fn bag_row(partition_key: &str, row_key: &str, bag: &Bag) -> Result<Row> {
    let mut builder = Row::build(partition_key, row_key);
    for (name, value) in bag.iter() {
        builder.put(name, value.as_ref());
    }
    builder.finish()
}
