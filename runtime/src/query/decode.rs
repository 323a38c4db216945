//! Decodes decrypted rows into the queried types.

use crate::{
    entity::{FromRow, Recognition, Schema, Stored, TableEntity, read_other_version},
    error::Result,
    key::RowFamily,
    row::{Row, error_with_row_keys},
};

/// Decodes a row of `E`'s `family` as a `T`. Fails for any other row.
pub(crate) fn decode_required<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static RowFamily,
) -> Result<Stored<T>> {
    let decoded = E::SCHEMA.recognize_as(&row, family).and_then(|recognized| {
        let version = QueriedVersion::of_recognized(recognized);
        let version = version.map_err(|other| E::SCHEMA.unrecognized_error(&other))?;
        decode_version::<E, T>(&row, family, version)
    });
    match decoded {
        Ok(value) => Ok(Stored::from_read_row(value, row, family)),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

/// Decodes a row of a range that may contain other types. Returns `None` for a row of another type, and
/// fails for an unknown version of `E`.
pub(crate) fn decode_or_skip<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static RowFamily,
) -> Result<Option<Stored<T>>> {
    let decoded = recognize_or_skip(E::SCHEMA, &row, family).and_then(|recognized| {
        let Some(version) = recognized else { return Ok(None) };
        decode_version::<E, T>(&row, family, version).map(Some)
    });
    match decoded {
        Ok(value) => Ok(value.map(|value| Stored::from_read_row(value, row, family))),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

/// The version of a row of the queried type.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueriedVersion {
    /// The version of the struct.
    Own,
    /// Another version, known or unknown.
    Other(u32),
}

impl QueriedVersion {
    /// Returns the recognition of a row of another type as the error.
    fn of_recognized(recognized: Recognition) -> Result<Self, Recognition> {
        match recognized {
            Recognition::Ours => Ok(Self::Own),
            Recognition::Version(version) => Ok(Self::Other(version)),
            other @ (Recognition::Foreign(_) | Recognition::Unmarked) => Err(other),
        }
    }
}

/// Returns the version of a row of a range that may contain other types, or `None` for a row of another type. A row
/// of an unknown version is not skipped: the entity would appear not to exist.
pub(super) fn recognize_or_skip(
    schema: &'static Schema,
    row: &Row,
    family: &'static RowFamily,
) -> Result<Option<QueriedVersion>> {
    let recognized = schema.recognize_as(row, family)?;
    Ok(QueriedVersion::of_recognized(recognized).ok())
}

fn decode_version<E: TableEntity, T: FromRow>(
    row: &Row,
    family: &'static RowFamily,
    version: QueriedVersion,
) -> Result<T> {
    match version {
        QueriedVersion::Own => T::from_copy(row, family),
        QueriedVersion::Other(version) => read_other_version::<E, T>(row, family.name, version)?
            .ok_or_else(|| E::SCHEMA.unknown_version_error(version)),
    }
}
