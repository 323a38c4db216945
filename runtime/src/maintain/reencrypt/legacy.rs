//! Converts rows that an earlier storage client library encrypted ("client-side encryption",
//! protocol 1.0) into the format of this crate.
//!
//! A merge cannot remove the two properties of that protocol, so a row is replaced under the ETag that was
//! read. The old libraries did not escape keys. If a RowKey contains a `~` that does not begin an escape, the row
//! is inserted under the escaped RowKey, which its entity reads, and the old row is deleted. The old format has
//! no authentication: build without the feature `legacy-encryption` when no row in that format is left.

use std::borrow::Cow;

use crate::{
    batch::{Condition, Operation},
    edm::{EdmType, Value, ValueRef},
    entity::{TableEntity, row_kind::PrimaryMarking},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    plan::StoredAs,
    row::{Row, RowBuilder},
    seal::{
        METADATA_PROPERTY,
        legacy::{LegacyKeys, decrypt_row, is_legacy},
    },
    store::sealing::plan::OperationToSeal,
    table::Table,
};

/// Returns a filter for rows encrypted in the old format.
pub(super) fn filter_of_legacy_rows() -> Filter {
    // Rows without the property match no comparison.
    Filter::ne(METADATA_PROPERTY, "any")
}

/// Returns the writes that store a row in this crate's format: one that replaces the row, or two that move it
/// to the escaped RowKey. Returns none for a row that is not in the old format.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` for a row in the old format that is not a primary of the entity. The row
/// is left unchanged, and the error keeps the migration from counting as complete.
pub(super) async fn convert_row<E: TableEntity>(
    table: &Table<E>,
    keys: &LegacyKeys,
    row: &Row,
) -> Result<Vec<OperationToSeal>> {
    if !is_legacy(row)? {
        return Ok(Vec::new());
    }
    let Some(primary) = E::SCHEMA.legacy_marking_of_row(row)? else {
        let message = format!(
            "the row is encrypted in the old format but is not a primary of `{}`: its type differs or its keys do not \
             fit the template; migrate it as its own type, or replace it",
            E::SCHEMA.entity
        );
        let error = Error::new(ErrorKind::UnrecognizedEntity, message);
        return Err(error.at_keys(row.partition_key(), row.row_key()));
    };
    let family = E::SCHEMA.primary()?;
    let (old, modern) = split_formats(table, row).await?;
    // Decryption needs the old keys of the row.
    let plain = decrypt_row(keys, &old).await?;
    let row_key = family.row.template_spelling_of_key(row.row_key());
    let row_key = row_key.unwrap_or(Cow::Borrowed(row.row_key()));
    let mut out = Row::build(row.partition_key(), &row_key);
    if let PrimaryMarking::Unmarked(name) = primary {
        out.put(name, ValueRef::String(family.marker));
    }
    let mut names = copy_plain(&old, &plain, &mut out)?;
    for (name, value) in &modern {
        out.put(name, value.as_ref());
        names.push(name.as_str().into());
    }
    let converted = out.finish()?.with_encrypted_names(names);
    // A row that cannot be read as the entity must not be written as one.
    E::from_row(&converted).map_err(|error| error.at_keys(row.partition_key(), row.row_key()))?;
    // Write under the ETag that was read: if another writer is first, the row is read again.
    let guard = Condition::for_etag(row.etag());
    let stored_as = StoredAs::Entity(E::SCHEMA, family);
    if row_key == row.row_key() {
        let replace = Operation::replace(converted, guard);
        return Ok(vec![OperationToSeal::new(replace, stored_as)]);
    }
    let delete = Operation::delete(row.partition_key(), row.row_key(), guard)?;
    Ok(vec![
        OperationToSeal::new(Operation::insert(converted), stored_as),
        OperationToSeal::new(delete, StoredAs::Framework),
    ])
}

/// Returns the error for a row that is left because another row has its escaped RowKey.
pub(super) fn spelled_key_taken_error(row: &Row) -> Error {
    let message = "the row is in the old format and its RowKey contains `~`, which entity keys escape as `~7E`, but a \
                   row with the escaped RowKey already exists; delete one of them";
    Error::new(ErrorKind::Conflict, message).at_keys(row.partition_key(), row.row_key())
}

/// Splits a row into the row that the old library wrote and the decrypted values that were merged into it
/// later in this crate's format.
async fn split_formats<E: TableEntity>(
    table: &Table<E>,
    row: &Row,
) -> Result<(Row, Vec<(String, Value)>)> {
    let sealing = &table.client.store().sealing;
    let mut old = Row::build(row.partition_key(), row.row_key());
    let mut modern = Vec::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = text_of(name)?;
        match sealing.try_decrypt_value::<E>(row, name, value).await {
            Some(value) => modern.push((name.to_owned(), value)),
            None => old.put(name, value),
        }
    }
    Ok((finish_with_etag(old, row)?, modern))
}

fn finish_with_etag(out: RowBuilder, like: &Row) -> Result<Row> {
    let row = out.finish()?;
    Ok(match like.etag() {
        Some(etag) => row.with_etag(etag),
        None => row,
    })
}

/// Copies the decrypted row into `out`. Returns the names of the properties that were encrypted, which are
/// bytes in `old` and text in `plain`.
fn copy_plain(old: &Row, plain: &Row, out: &mut RowBuilder) -> Result<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut properties = plain.properties();
    while let Some((name, value)) = properties.next()? {
        let name = text_of(name)?;
        let before = old.get(name)?.map(|value| value.edm_type());
        if before == Some(EdmType::Binary) && value.edm_type() == EdmType::String {
            names.push(name.into());
        }
        out.put(name, value);
    }
    Ok(names)
}

fn text_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name)
        .map_err(|_| Error::new(ErrorKind::Corrupt, "a property's name is not UTF-8"))
}
