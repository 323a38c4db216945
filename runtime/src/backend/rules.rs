//! What an operation does to a row: the service's table of single operations, for the backends that
//! keep rows themselves.
//!
//! Existence is looked at before the ETag: a missing row is 404 under every condition. Keys,
//! properties, sizes and the composition of a batch are not looked at again: a [`Batch`] is only
//! made of what was checked.

use std::{collections::HashSet, str::from_utf8};

use crate::{
    batch::{Batch, Condition, Operation, Verb, Written},
    clock::Clock,
    edm::Ticks,
    error::{Error, Result, ServiceCode},
    limits,
    row::{Row, corrupt_row},
};

/// What is to be stored in place of the row; `None`: nothing, it is deleted.
pub(crate) type Outcome = Option<Row>;

/// The time of the next write: the clock's, or one tick after the last write where the clock is
/// behind it. A row that is deleted and inserted again within one tick of the clock so has another
/// ETag than before.
pub(crate) fn next_write(clock: &dyn Clock, last: Ticks) -> Ticks {
    clock.now().max(last.next())
}

/// What `operation` makes of `current`, at `now`. The new row's Timestamp is after the old one's,
/// so that two versions of a row never share an ETag.
///
/// # Errors
///
/// `ResourceNotFound`, `EntityAlreadyExists`, `UpdateConditionNotSatisfied`, `InvalidInput` for a
/// text that is no ETag, and what [`Row::check`] says of a row that grew by a merge.
pub(crate) fn outcome(current: Option<&Row>, operation: &Operation, now: Ticks) -> Result<Outcome> {
    let row = operation.row();
    match (operation.condition(), current) {
        (Some(Condition::Match(etag)), _) if !etag.is_weak() => {
            let message = format!("`{etag}` is not an ETag, send one back as it was read");
            return Err(Error::service(ServiceCode::InvalidInput, message));
        }
        (Some(_), None) => return Err(entity_missing()),
        (Some(Condition::Match(etag)), Some(current)) if current.etag().as_ref() != Some(etag) => {
            let message = "the row is in another version than the ETag that was sent";
            return Err(Error::service(ServiceCode::UpdateConditionNotSatisfied, message));
        }
        _ => {}
    }
    let now = match current.and_then(Row::timestamp) {
        Some(before) if before >= now => before.next(),
        _ => now,
    };
    match (operation.verb(), current) {
        (Verb::Delete, _) => Ok(None),
        (Verb::Insert, Some(_)) => {
            let message = "the entity exists already";
            Err(Error::service(ServiceCode::EntityAlreadyExists, message))
        }
        (Verb::Merge | Verb::InsertOrMerge, Some(old)) => merged(old, row, now).map(Some),
        _ => Ok(Some(row.with_timestamp(now))),
    }
}

/// The error of an operation, with its place.
pub(crate) fn failed(error: Error, batch: &Batch, index: usize) -> Error {
    let error = error.in_table(batch.table()).at_operation(index);
    match batch.operations().get(index) {
        Some(operation) => {
            error.at_keys(operation.row().partition_key(), operation.row().row_key())
        }
        None => error,
    }
}

/// The answer to an operation that left `outcome`.
pub(crate) fn written(operation: &Operation, outcome: &Outcome) -> Written {
    let status = if operation.verb() == Verb::Insert { 201 } else { 204 };
    Written { status, etag: outcome.as_ref().and_then(Row::etag) }
}

/// Refuses a batch without operations: the service has no answer for it.
pub(crate) fn check_batch(batch: &Batch) -> Result<()> {
    if batch.is_empty() {
        let message = "an entity group transaction has at least one operation";
        return Err(Error::service(ServiceCode::InvalidInput, message).in_table(batch.table()));
    }
    Ok(())
}

/// Refuses keys that no row has.
pub(crate) fn check_keys(table: &str, partition_key: &str, row_key: &str) -> Result<()> {
    limits::check_key("PartitionKey", partition_key)
        .and_then(|()| limits::check_key("RowKey", row_key))
        .map_err(|error| error.in_table(table).at_keys(partition_key, row_key))
}

/// The row with the selected properties alone; those that it lacks stay absent.
pub(crate) fn selected(row: &Row, select: Option<&[String]>) -> Result<Row> {
    let Some(select) = select else { return Ok(row.clone()) };
    let mut builder = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if let Some(name) = select.iter().find(|wanted| wanted.as_bytes() == name) {
            builder.put(name, value);
        }
    }
    builder.finish_at(row.timestamp().unwrap_or_default())
}

/// The error for a row that is not there.
pub(crate) fn entity_missing() -> Error {
    Error::service(ServiceCode::ResourceNotFound, "there is no entity with these keys")
}

/// The error for a table that is not there.
pub(crate) fn table_missing(table: &str) -> Error {
    Error::service(ServiceCode::TableNotFound, "the table does not exist, create it first")
        .in_table(table)
}

/// The old row with the new row's properties set.
fn merged(old: &Row, new: &Row, now: Ticks) -> Result<Row> {
    let mut set = HashSet::new();
    let mut properties = new.properties();
    while let Some((name, _)) = properties.next()? {
        set.insert(name);
    }
    let mut builder = Row::build(old.partition_key(), old.row_key());
    for (row, stays) in [(old, true), (new, false)] {
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            if !(stays && set.contains(name)) {
                let name = from_utf8(name).map_err(|_| corrupt_row("a name is not UTF-8"))?;
                builder.put(name, value);
            }
        }
    }
    // A merge adds up two rows that were each within the limits.
    let row = builder.finish_at(now)?;
    row.check()?;
    Ok(row)
}
