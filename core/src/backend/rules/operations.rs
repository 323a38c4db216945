//! The service's rules for single operations: which operation succeeds on which row, and what the row holds afterwards.
//!
//! Existence is checked before the ETag: a missing row is 404 under every condition. Keys, properties,
//! sizes and the composition of a batch are not checked here, because a [`Batch`] contains only checked
//! operations.

use std::{collections::HashSet, str::from_utf8};

use crate::{
    batch::{Batch, Condition, Operation, Verb, Written},
    clock::Clock,
    edm::Ticks,
    error::{Error, Result, ServiceCode},
    limits,
    row::{Row, corrupt_row_error},
};

/// Returns the Timestamp of the next write: the clock's time, or one tick after the last write if the
/// clock is not later. A row that is deleted and inserted again within one tick of the clock thus gets
/// another ETag.
///
/// ```
/// use entable_core::{SteppedClock, Ticks, backend::rules::next_write_time};
///
/// let clock = SteppedClock::new(Ticks::UNIX_EPOCH);
/// let first = next_write_time(&clock, Ticks::default());
/// assert_eq!(first, Ticks::UNIX_EPOCH);
/// assert!(next_write_time(&clock, first) > first);
/// ```
pub fn next_write_time(clock: &dyn Clock, last: Ticks) -> Ticks {
    clock.now().max(last.next())
}

/// Returns the row that results if `operation` is applied at time `now` to the stored row `current`, or to no row if
/// `current` is `None`. Returns `None` if no row is left. The new Timestamp is always later than the old one: two
/// versions of a row never share an ETag.
///
/// # Errors
///
/// `ResourceNotFound`, `EntityAlreadyExists`, `UpdateConditionNotSatisfied`; `InvalidInput` for text that is not an
/// ETag; the errors of [`Row::check`] for a row that a merge lets grow over the limits.
///
/// ```
/// use entable_core::{Operation, Row, Ticks, backend::rules::resulting_row};
///
/// let insert = Operation::insert(Row::build("Sales", "223").finish()?);
/// let row = resulting_row(None, &insert, Ticks::UNIX_EPOCH)?;
/// assert_eq!(row.as_ref().and_then(Row::timestamp), Some(Ticks::UNIX_EPOCH));
/// let error = resulting_row(row.as_ref(), &insert, Ticks::UNIX_EPOCH).unwrap_err();
/// assert_eq!(error.code(), Some("EntityAlreadyExists"));
/// # Ok::<(), entable_core::Error>(())
/// ```
pub fn resulting_row(
    current: Option<&Row>,
    operation: &Operation,
    now: Ticks,
) -> Result<Option<Row>> {
    let row = operation.row();
    match (operation.condition(), current) {
        (Some(Condition::Match(etag)), _) if !etag.is_weak() => {
            let message = format!(
                "`{}` is not an ETag; pass an ETag exactly as it was read",
                etag.to_string().escape_debug()
            );
            return Err(Error::service(ServiceCode::InvalidInput, message));
        }
        (Some(_), None) => return Err(entity_missing_error()),
        (Some(Condition::Match(etag)), Some(current)) if current.etag().as_ref() != Some(etag) => {
            let message = "the row's ETag differs from the ETag in the request";
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
            let message = "the entity already exists";
            Err(Error::service(ServiceCode::EntityAlreadyExists, message))
        }
        (Verb::Merge | Verb::InsertOrMerge, Some(old)) => merged_row(old, row, now).map(Some),
        _ => Ok(Some(row.with_timestamp(now))),
    }
}

/// Adds table, keys and position of an operation to its error.
///
/// ```
/// use entable_core::{Batch, Operation, Row, backend::rules};
///
/// let insert = Operation::insert(Row::build("Sales", "223").finish()?);
/// let batch = Batch::single("Staff", insert)?;
/// let error = rules::name_operation_in_error(rules::table_missing_error("Staff"), &batch, 0);
/// assert_eq!((error.failed_index(), error.keys()), (Some(0), Some(("Sales", "223"))));
/// # Ok::<(), entable_core::Error>(())
/// ```
pub fn name_operation_in_error(error: Error, batch: &Batch, index: usize) -> Error {
    let error = error.in_table(batch.table()).at_operation(index);
    match batch.operations().get(index) {
        Some(operation) => {
            error.at_keys(operation.row().partition_key(), operation.row().row_key())
        }
        None => error,
    }
}

/// Returns the answer to an operation that was applied: status 201 for an insert, else 204, and the ETag of `row`, the
/// resulting row. It has no ETag if no row is left.
///
/// ```
/// use entable_core::{Condition, Operation, backend::rules::written_answer};
///
/// let delete = Operation::delete("Sales", "223", Condition::Any)?;
/// let written = written_answer(&delete, None);
/// assert_eq!((written.status, written.etag), (204, None));
/// # Ok::<(), entable_core::Error>(())
/// ```
pub fn written_answer(operation: &Operation, row: Option<&Row>) -> Written {
    let status = if operation.verb() == Verb::Insert { 201 } else { 204 };
    Written::new(status, row.and_then(Row::etag))
}

/// Refuses a batch without operations, which the service cannot answer.
///
/// # Errors
///
/// `InvalidInput` for an empty batch.
///
/// ```
/// use entable_core::{Batch, backend::rules::check_not_empty};
///
/// assert_eq!(check_not_empty(&Batch::new("Staff")).unwrap_err().code(), Some("InvalidInput"));
/// ```
pub fn check_not_empty(batch: &Batch) -> Result<()> {
    if batch.is_empty() {
        let message = "an entity group transaction needs at least one operation";
        return Err(Error::service(ServiceCode::InvalidInput, message).in_table(batch.table()));
    }
    Ok(())
}

/// Refuses keys that no row can have.
///
/// # Errors
///
/// `is_invalid` or `is_too_large` with the table and the keys.
///
/// ```
/// use entable_core::backend::rules::check_read_keys;
///
/// assert!(check_read_keys("Staff", "Sales", "223").is_ok());
/// assert!(check_read_keys("Staff", "Sales", "2/23").unwrap_err().is_invalid());
/// ```
pub fn check_read_keys(table: &str, partition_key: &str, row_key: &str) -> Result<()> {
    limits::check_key("PartitionKey", partition_key)
        .and_then(|()| limits::check_key("RowKey", row_key))
        .map_err(|error| error.in_table(table).at_keys(partition_key, row_key))
}

/// Returns the row with only the selected properties. `None` selects all. Properties that the row lacks stay absent.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
///
/// ```
/// use entable_core::{Row, ValueRef, backend::rules::select_properties};
///
/// let mut row = Row::build("Sales", "223");
/// row.put("Age", ValueRef::Int32(34));
/// row.put("Name", ValueRef::String("Jones"));
/// let selected = select_properties(&row.finish()?, Some(&["Age".to_owned()]))?;
/// assert_eq!((selected.row_key(), selected.property_count()?), ("223", 1));
/// # Ok::<(), entable_core::Error>(())
/// ```
pub fn select_properties(row: &Row, select: Option<&[String]>) -> Result<Row> {
    match select {
        None => Ok(row.clone()),
        Some(names) => Row::from_selected_properties(row.bytes(), names),
    }
}

fn entity_missing_error() -> Error {
    Error::service(ServiceCode::ResourceNotFound, "there is no entity with these keys")
}

/// Returns the error for a table that does not exist.
///
/// ```
/// use entable_core::backend::rules::table_missing_error;
///
/// assert_eq!(table_missing_error("Staff").code(), Some("TableNotFound"));
/// ```
pub fn table_missing_error(table: &str) -> Error {
    Error::service(ServiceCode::TableNotFound, "the table does not exist; create it first")
        .in_table(table)
}

/// Sets the properties of `new` on `old`; the other properties of `old` stay.
fn merged_row(old: &Row, new: &Row, now: Ticks) -> Result<Row> {
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
                let name = from_utf8(name).map_err(|_| corrupt_row_error("a name is not UTF-8"))?;
                builder.put(name, value);
            }
        }
    }
    // Each row is within the limits, but the two together may not be.
    let row = builder.finish_at(now)?;
    row.check()?;
    Ok(row)
}
