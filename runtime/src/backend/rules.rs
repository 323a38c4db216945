//! What an operation does to a row: the service's table of single operations, for the backends that
//! keep rows themselves.
//!
//! Existence is looked at before the ETag: a missing row is 404 under every condition.

use crate::{
    batch::{Condition, Operation, Verb},
    edm::Ticks,
    error::{Error, Result, ServiceCode},
    row::Row,
};

/// What is to be stored in place of the row; `None`: nothing, it is deleted.
pub(crate) type Outcome = Option<Row>;

/// What `operation` makes of `current`, at `now`. The new row's Timestamp is after the old one's,
/// so that two versions of a row never share an ETag.
pub(crate) fn outcome(current: Option<&Row>, operation: &Operation, now: Ticks) -> Result<Outcome> {
    let row = operation.row();
    let old = match (operation.condition(), current) {
        (None, current) => current,
        (Some(_), None) => {
            let message = "the specified resource does not exist";
            return Err(Error::service(ServiceCode::ResourceNotFound, message));
        }
        (Some(condition), Some(current)) => {
            check_version(condition, current)?;
            Some(current)
        }
    };
    let now = match old.and_then(Row::timestamp) {
        Some(before) if before >= now => before.next(),
        _ => now,
    };
    match (operation.verb(), old) {
        (Verb::Delete, _) => Ok(None),
        (Verb::Insert, Some(_)) => {
            let message = "the specified entity already exists";
            Err(Error::service(ServiceCode::EntityAlreadyExists, message))
        }
        (Verb::Merge | Verb::InsertOrMerge, Some(old)) => merged(old, row)?.map_checked(now),
        _ => Ok(Some(row.written_at(now))),
    }
}

fn check_version(condition: &Condition, current: &Row) -> Result<()> {
    match condition {
        Condition::Match(etag) if current.etag().as_ref() != Some(etag) => {
            let message = "the update condition specified in the request was not satisfied";
            Err(Error::service(ServiceCode::UpdateConditionNotSatisfied, message))
        }
        _ => Ok(()),
    }
}

/// The old row with the new row's properties set.
fn merged(old: &Row, new: &Row) -> Result<Merged> {
    let mut builder = Row::build(old.partition_key(), old.row_key());
    let mut properties = old.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        if new.get(&name)?.is_none() {
            builder.put(&name, value);
        }
    }
    let mut properties = new.properties();
    while let Some((name, value)) = properties.next()? {
        builder.put(&String::from_utf8_lossy(name), value);
    }
    builder.finish().map(Merged)
}

/// A row that grew by a merge: its size and count are looked at again.
struct Merged(Row);

impl Merged {
    fn map_checked(self, now: Ticks) -> Result<Outcome> {
        self.0.check()?;
        Ok(Some(self.0.written_at(now)))
    }
}
