//! Plain rows as values of the types that are asked for.

use super::{
    columns::with_owner,
    request::{is_read_whole, with_system},
};
use crate::{
    entity::{FromRow, Recognition, Stored, TableEntity, read_other_version},
    error::{Error, Result},
    key::Family,
    row::Row,
};

/// What a point read of an entity's columns selects. A row that may be of an older version is read
/// whole: its properties have other names.
pub(crate) fn selected<E: TableEntity, T: FromRow>(
    family: Option<&'static Family>,
) -> Option<Vec<String>> {
    if is_read_whole(E::SCHEMA) {
        return None;
    }
    let columns = T::columns(family)?;
    Some(with_owner(with_system(columns, Some(E::SCHEMA)), family))
}

/// A row that has to be an `E` of that family, read as a `T`.
pub(crate) fn decode_required<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static Family,
) -> Result<Stored<T>> {
    match recognized::<E, T>(&row, family) {
        Ok(Ok(value)) => Ok(Stored::read_from(value, row, family)),
        Ok(Err(other)) => Err(at(&row, E::SCHEMA.unrecognized_error(&other))),
        Err(error) => Err(at(&row, error)),
    }
}

/// A row of a range that may hold other types, which are skipped; another version of the type is
/// an error.
pub(crate) fn decode_or_skip<E: TableEntity, T: FromRow>(
    row: Row,
    family: &'static Family,
) -> Result<Option<Stored<T>>> {
    match recognized::<E, T>(&row, family) {
        Ok(Ok(value)) => Ok(Some(Stored::read_from(value, row, family))),
        Ok(Err(Recognition::Foreign(_) | Recognition::Unmarked)) => Ok(None),
        Ok(Err(other)) => Err(at(&row, E::SCHEMA.unrecognized_error(&other))),
        Err(error) => Err(at(&row, error)),
    }
}

fn recognized<E: TableEntity, T: FromRow>(
    row: &Row,
    family: &'static Family,
) -> Result<Result<T, Recognition>> {
    match E::SCHEMA.recognize(row, family)? {
        Recognition::Ours => T::from_copy(row, family).map(Ok),
        Recognition::Version(version) => {
            let value = read_other_version::<E, T>(row, family.name, version)?;
            Ok(value.ok_or(Recognition::Version(version)))
        }
        other => Ok(Err(other)),
    }
}

/// The error, naming the row.
pub(crate) fn at(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}
