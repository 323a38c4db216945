//! Replaces and deletes values of sets. Called by generated code.

use super::writable::BulkChange;
use crate::{
    entity::{DynamicEntity, EntitySet, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    plan,
    row::error_with_row_keys,
};

/// Returns the change that replaces an entity that was read as a variant of a set. `member` is the variant's
/// position in the set.
///
/// # Errors
///
/// Fails as the write of a single entity does, and with `is_invalid` if the row was read as another variant.
pub fn plan_replacement_of<S: EntitySet, E: TableEntity>(
    stored: &Stored<S>,
    member: &E,
    place: usize,
) -> Result<BulkChange> {
    refuse_changed_variant(stored, place)?;
    plan::replace_row_by_entity(stored, member).map(BulkChange)
}

/// Returns the change that deletes an entity that was read as a variant of a set.
///
/// # Errors
///
/// Fails if the entity's keys cannot be built, and with `is_invalid` if the row was read as another variant.
pub fn plan_removal_of<S: EntitySet, E: TableEntity>(
    stored: &Stored<S>,
    _: &E,
    place: usize,
) -> Result<BulkChange> {
    refuse_changed_variant(stored, place)?;
    plan::delete::<S, E>(stored).map(BulkChange)
}

/// Returns the change that replaces a row by `other`. The row was read as the set's `#[table(other)]` variant,
/// which holds rows of unknown types.
///
/// # Errors
///
/// Fails as the write of a single entity does, and with `is_invalid` if the row was read as a member.
pub fn plan_replacement_of_unknown_type<S: EntitySet>(
    stored: &Stored<S>,
    other: &DynamicEntity,
) -> Result<BulkChange> {
    refuse_member_row(stored)?;
    plan::replace_row(stored, other).map(BulkChange)
}

/// Returns the change that deletes a row of unknown type. The set read the row as its `#[table(other)]` variant.
///
/// # Errors
///
/// Fails for keys that the service refuses, and with `is_invalid` if the row was read as a member.
pub fn plan_removal_of_unknown_type<S: EntitySet>(stored: &Stored<S>) -> Result<BulkChange> {
    refuse_member_row(stored)?;
    plan::delete_row(stored).map(BulkChange)
}

/// Refuses a value whose variant has changed since it was read. Writing it would leave behind the copies and
/// lists of the old variant.
fn refuse_changed_variant<S: EntitySet>(stored: &Stored<S>, place: usize) -> Result<()> {
    match S::MEMBERS.match_row(stored.row())? {
        Some(matched) if matched.member_index() == place => Ok(()),
        Some(matched) => Err(changed_variant_error(stored, S::MEMBERS.member_name_of(&matched))),
        None => Err(changed_variant_error(stored, "DynamicEntity")),
    }
}

/// Refuses to write the `other` variant to a row that was read as a member, which would leave behind the
/// member's copies and lists. Accepts a row that has a member's type but does not fit it, because such a row
/// is read as `other`.
fn refuse_member_row<S: EntitySet>(stored: &Stored<S>) -> Result<()> {
    match S::MEMBERS.match_row(stored.row())? {
        Some(matched) if S::read(stored.row(), &matched).is_ok() => {
            Err(changed_variant_error(stored, S::MEMBERS.member_name_of(&matched)))
        }
        _ => Ok(()),
    }
}

fn changed_variant_error<S: EntitySet>(stored: &Stored<S>, was: &str) -> Error {
    let now = stored.member_name();
    let message = format!(
        "the row was read as `{was}`, but the value is now a `{now}`; delete the old entity and insert the new one"
    );
    error_with_row_keys(stored.row(), Error::new(ErrorKind::Invalid, message))
}
