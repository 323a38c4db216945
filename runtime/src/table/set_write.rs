//! How values of sets are written back and deleted; the derives call it.

use super::bulk::group::BulkChange;
use crate::{
    entity::{DynamicEntity, EntitySet, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    plan,
    query::decode::at,
};

/// How a variant of a set is written back: the member of that place.
///
/// # Errors
///
/// As for a single write; `is_invalid` for a row that was read as another variant.
pub fn replacement_of<S: EntitySet, E: TableEntity>(
    stored: &Stored<S>,
    member: &E,
    place: usize,
) -> Result<BulkChange> {
    is_still(stored, place)?;
    plan::replace_with(stored, member).map(BulkChange)
}

/// How a variant of a set is deleted.
///
/// # Errors
///
/// Keys that cannot be; `is_invalid` for a row that was read as another variant.
pub fn removal_of<S: EntitySet, E: TableEntity>(
    stored: &Stored<S>,
    _: &E,
    place: usize,
) -> Result<BulkChange> {
    is_still(stored, place)?;
    plan::delete::<S, E>(stored).map(BulkChange)
}

/// How a set's variant for other rows is written back.
///
/// # Errors
///
/// As for a single write; `is_invalid` for a row that was read as a member.
pub fn other_replacement<S: EntitySet>(
    stored: &Stored<S>,
    other: &DynamicEntity,
) -> Result<BulkChange> {
    is_no_member(stored)?;
    plan::replace_row(stored, other).map(BulkChange)
}

/// How a set's variant for other rows is deleted.
///
/// # Errors
///
/// Keys that cannot be; `is_invalid` for a row that was read as a member.
pub fn other_removal<S: EntitySet>(stored: &Stored<S>) -> Result<BulkChange> {
    is_no_member(stored)?;
    plan::delete_row(stored).map(BulkChange)
}

/// A value of another variant would leave the copies and lists of the one that was read.
fn is_still<S: EntitySet>(stored: &Stored<S>, place: usize) -> Result<()> {
    match S::MEMBERS.match_row(stored.row())? {
        Some(matched) if matched.member() == place => Ok(()),
        Some(matched) => Err(changed(stored, S::MEMBERS.member_name_of(&matched))),
        None => Err(changed(stored, "DynamicEntity")),
    }
}

/// A row that says a member's type and does not fit was read as a row of no member.
fn is_no_member<S: EntitySet>(stored: &Stored<S>) -> Result<()> {
    match S::MEMBERS.match_row(stored.row())? {
        Some(matched) if S::read(stored.row(), &matched).is_ok() => {
            Err(changed(stored, S::MEMBERS.member_name_of(&matched)))
        }
        _ => Ok(()),
    }
}

fn changed<S: EntitySet>(stored: &Stored<S>, was: &str) -> Error {
    let now = stored.member_name();
    let message = format!(
        "the row was read as `{was}`, and the value is a `{now}` now; delete the one and insert the other"
    );
    at(stored.row(), Error::new(ErrorKind::Invalid, message))
}
