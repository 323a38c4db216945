//! Decodes decrypted rows into the queried types.

use crate::{
    entity::{FromRow, Recognition, Stored, TableEntity, read_other_version},
    error::Result,
    key::RowFamily,
    row::{Row, error_with_row_keys},
};

/// Decodes a row of `E`'s `family` as a `T`. Fails for any other row.
pub(crate) fn decode_required<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static RowFamily,
) -> Result<Stored<T>> {
    match decode_recognized::<E, T>(&row, family) {
        Ok(Ok(value)) => Ok(Stored::from_read_row(value, row, family)),
        Ok(Err(other)) => Err(error_with_row_keys(&row, E::SCHEMA.unrecognized_error(&other))),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

/// Decodes a row of a range that may contain other types. Returns `None` for a row of another type, and
/// fails for an unknown version of `E`.
pub(crate) fn decode_or_skip<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static RowFamily,
) -> Result<Option<Stored<T>>> {
    match decode_recognized::<E, T>(&row, family) {
        Ok(Ok(value)) => Ok(Some(Stored::from_read_row(value, row, family))),
        Ok(Err(Recognition::Foreign(_) | Recognition::Unmarked)) => Ok(None),
        // An entity of an unknown version is an error. Skipped, it would appear not to exist.
        Ok(Err(other)) => Err(error_with_row_keys(&row, E::SCHEMA.unrecognized_error(&other))),
        Err(error) => Err(error_with_row_keys(&row, error)),
    }
}

fn decode_recognized<E: TableEntity, T: FromRow>(
    row: &Row,
    family: &'static RowFamily,
) -> Result<Result<T, Recognition>> {
    match E::SCHEMA.recognize_as(row, family)? {
        Recognition::Ours => T::from_copy(row, family).map(Ok),
        Recognition::Version(version) => {
            let value = read_other_version::<E, T>(row, family.name, version)?;
            Ok(value.ok_or(Recognition::Version(version)))
        }
        other => Ok(Err(other)),
    }
}
