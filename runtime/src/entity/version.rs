//! Reads rows of an older version as that version's struct, and upgrades the value to the current struct.

use super::{EntityRows, FromRow, Recognition, Schema, TableEntity};
use crate::{
    error::{BoxError, Error, ErrorKind, Result},
    key::{FamilyKind, RowFamily},
    row::Row,
};

/// A struct that an older version's struct can be converted to. Implemented for every type with `TryFrom<Old>`.
#[diagnostic::on_unimplemented(
    message = "`{Old}` cannot be converted to `{Self}`",
    label = "no conversion from `{Old}`",
    note = "implement `From<{Old}>` for `{Self}`, or `TryFrom<{Old}>` with an error that can be boxed"
)]
pub trait UpgradeFrom<Old>: Sized {
    /// Converts a value of the older version.
    ///
    /// # Errors
    ///
    /// Fails with the error of the conversion.
    fn upgrade(old: Old) -> Result<Self, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<Old, New: TryFrom<Old, Error: Into<BoxError>>> UpgradeFrom<Old> for New {
    fn upgrade(old: Old) -> Result<Self, BoxError> {
        Self::try_from(old).map_err(Into::into)
    }
}

/// Reads an entity of an older version and converts it to the newer one. Called by code that `upgrade_from`
/// generates.
///
/// # Errors
///
/// Fails with `is_decode` if the row does not fit its version, or if the conversion fails.
pub fn read_and_upgrade_older<Old: TableEntity, New: TableEntity>(
    row: &Row,
    family: &str,
    version: u32,
    upgrade: impl FnOnce(Old) -> Result<New, BoxError>,
) -> Result<Option<New>> {
    let old = match family_of(Old::SCHEMA, family, version) {
        Some(family) => Some(Old::from_copy(row, family)?),
        None if version < Old::SCHEMA.version => Old::from_version(row, family, version)?,
        None => None,
    };
    old.map(upgrade)
        .transpose()
        .map_err(|reason| upgrade_error(Old::SCHEMA, New::SCHEMA, version, reason))
}

/// Returns the error for an entity that cannot be converted from an older version.
fn upgrade_error(old: &Schema, new: &Schema, version: u32, reason: BoxError) -> Error {
    let message = format!(
        "version {version} of `{}` cannot be read as version {}",
        new.entity_type, new.version
    );
    // The reason may contain values, which must not be shown if fields are encrypted.
    if [old, new].iter().any(|schema| schema.is_sealed()) {
        let message =
            format!("{message}; the reason is not shown because the entity has encrypted fields");
        return Error::new(ErrorKind::Decode, message);
    }
    Error::new(ErrorKind::Decode, format!("{message}: {reason}")).with_source(reason)
}

/// Returns all rows of an entity of an older version. Called by code that `upgrade_from` generates.
///
/// # Errors
///
/// Fails with `is_decode` if the row does not fit its version.
pub fn rows_of_older<Old: TableEntity>(
    row: &Row,
    family: &str,
    version: u32,
) -> Result<Option<EntityRows>> {
    match family_of(Old::SCHEMA, family, version) {
        Some(family) => rows_stored_for::<Old>(row, family).map(Some),
        None => Old::rows_of_version(row, family, version),
    }
}

/// Returns the keys of the primary that a copy of an older version belongs to. Called by code that
/// `upgrade_from` generates.
///
/// # Errors
///
/// Fails with `is_decode` if the copy does not fit its version.
pub fn owner_of_older<Old: TableEntity>(
    row: &Row,
    family: &str,
    version: u32,
) -> Result<Option<(String, String)>> {
    match family_of(Old::SCHEMA, family, version) {
        Some(family) => Old::owner_of(row, family),
        None => Old::owner_of_version(row, family, version),
    }
}

/// Finds the row family `name` of primaries or copies in `schema`. Returns `None` if the version of `schema` is
/// not `version`.
fn family_of(schema: &'static Schema, name: &str, version: u32) -> Option<&'static RowFamily> {
    let families: &'static [RowFamily] = schema.families;
    let same = |family: &&RowFamily| family.is_primary_or_copy() && family.name == name;
    (schema.version == version).then(|| families.iter().find(same)).flatten()
}

/// Reads a value from a row of another version of entity `E`. Returns `None` if the version is unknown.
///
/// Upgrades the entity and reads the value, which may be a projection, from the row that would store the entity
/// now.
pub(crate) fn read_other_version<E: TableEntity, T: FromRow>(
    row: &Row,
    family: &str,
    version: u32,
) -> Result<Option<T>> {
    let Some(entity) = E::from_version(row, family, version)? else { return Ok(None) };
    let current = entity.to_row()?;
    let current = match row.timestamp() {
        Some(timestamp) => current.with_timestamp(timestamp),
        None => current,
    };
    T::from_row(&current).map(Some)
}

/// Reads the entity from a row of `family`, whatever the row's version.
pub(crate) fn read_any_version<E: TableEntity>(row: &Row, family: &'static RowFamily) -> Result<E> {
    let Some(version) = other_version(E::SCHEMA, row, family)? else {
        return E::from_copy(row, family);
    };
    E::from_version(row, family.name, version)?
        .ok_or_else(|| E::SCHEMA.unknown_version_error(version))
}

/// Returns every row of the entity in `row`, as the version that wrote `row` stores them.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` for an unknown version, and with `is_decode` if the row does not fit.
pub fn rows_of_any_version<E: TableEntity>(
    row: &Row,
    family: &'static RowFamily,
) -> Result<EntityRows> {
    let Some(version) = other_version(E::SCHEMA, row, family)? else {
        return rows_stored_for::<E>(row, family);
    };
    E::rows_of_version(row, family.name, version)?
        .ok_or_else(|| E::SCHEMA.unknown_version_error(version))
}

/// Returns every row of the entity in a row of the current version.
fn rows_stored_for<E: TableEntity>(row: &Row, family: &'static RowFamily) -> Result<EntityRows> {
    let entity = E::from_copy(row, family)?;
    match family.kind {
        FamilyKind::Primary => {
            // Full copies also contain the stored primary's properties that no field declares.
            let unknown = E::SCHEMA.unknown_properties_of(row)?;
            unknown.add_to_copies(entity.rows_with(row.clone())?)
        }
        // A copy has other keys than its primary, so the primary is built from the entity.
        FamilyKind::Copy | FamilyKind::List => entity.rows(),
    }
}

/// Returns the primary row of the entity in a row of `family`, as this version writes it.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` for an unknown version, and with `is_decode` if the row does not fit.
pub fn primary_in_current_form<E: TableEntity>(
    row: &Row,
    family: &'static RowFamily,
) -> Result<Row> {
    read_any_version::<E>(row, family)?.to_row()
}

/// Returns the keys of the primary that a copy of `family` and `version` belongs to, or `None` if the copy does
/// not contain them.
///
/// # Errors
///
/// Fails with `is_decode` if the copy does not fit its version.
pub fn owner_in_any_version<E: TableEntity>(
    copy: &Row,
    family: &'static RowFamily,
    version: u32,
) -> Result<Option<(String, String)>> {
    if version == E::SCHEMA.version {
        E::owner_of(copy, family)
    } else {
        E::owner_of_version(copy, family.name, version)
    }
}

/// Returns the version of a row if it differs from the schema's.
fn other_version(
    schema: &'static Schema,
    row: &Row,
    family: &'static RowFamily,
) -> Result<Option<u32>> {
    Ok(match schema.recognize_as(row, family)? {
        Recognition::Version(version) => Some(version),
        _ => None,
    })
}
