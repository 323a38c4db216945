//! Reads and writes rows for maintenance: decrypts rows where possible, derives a primary's copies and
//! entries, and builds the write that fails if a primary has changed since it was read.

use std::collections::HashMap;

use crate::{
    address::RowAt,
    batch::{Condition, Operation},
    entity::{EntityRows, RowKind, RowVersion, TableEntity},
    error::Result,
    plan::{StoredAs, TokenMaker, derive::Derived, wide},
    row::{Row, error_with_row_keys},
    store::sealing::{open::ReadAs, plan::OperationToSeal},
    table::Table,
};

/// Decrypts rows of `at_table`. A copy of the entity's current version that cannot be decrypted or decoded is
/// returned in its stored form. A check then finds that it differs from its primary and can repair it.
///
/// # Errors
///
/// Fails if any other row cannot be decrypted or decoded. Fails for any other kind of error, even for copies,
/// such as a key store that does not answer.
pub(crate) async fn decrypt_rows<E: TableEntity>(
    table: &Table<E>,
    at_table: &str,
    rows: Vec<Row>,
) -> Result<Vec<Row>> {
    let stored = rows.clone();
    let rows = rows.into_iter().map(Ok).collect();
    let read_as = ReadAs::Typed(E::SCHEMA);
    let opened = table.client.store().sealing.unseal_rows(at_table, rows, read_as, None).await;
    let both = opened.into_iter().zip(stored);
    both.map(|(opened, stored)| match opened {
        // Returned as stored: it differs from what its primary derives and can be repaired.
        Err(error) if (error.is_decrypt() || error.is_decode()) && is_copy::<E>(&stored) => {
            Ok(stored)
        }
        opened => opened.map_err(|error| error.in_table(at_table)),
    })
    .collect()
}

/// Returns whether a row is a copy of the entity in its current version.
fn is_copy<E: TableEntity>(row: &Row) -> bool {
    matches!(
        E::SCHEMA.row_kind_of(row, None),
        Ok(RowKind::Copy(_, RowVersion::Known(schema))) if schema.version == E::SCHEMA.version
    )
}

/// Reads a row of the entity's table or of a table with its copies. Returns `None` if the row, or the table with
/// copies, does not exist.
pub(crate) async fn read_row<E: TableEntity>(
    table: &Table<E>,
    at: RowAt<'_>,
) -> Result<Option<Row>> {
    let store = table.client.store();
    let is_own = at.table == table.table_name();
    // The entity's own table must exist. A table of copies is created with its first copy.
    let row =
        if is_own { store.read_row(at).await? } else { store.row_if_table_exists(at).await? };
    match row {
        Some(row) => Ok(decrypt_rows(table, at.table.as_str(), vec![row]).await?.pop()),
        None => Ok(None),
    }
}

/// Reads a primary, with all parts of a wide entity joined. Returns `None` if it does not exist.
pub(crate) async fn read_primary<E: TableEntity>(
    table: &Table<E>,
    at: RowAt<'_>,
) -> Result<Option<Row>> {
    if !E::SCHEMA.is_wide() {
        return read_row(table, at).await;
    }
    crate::store::derive::read_primary_to_derive(table.client.store(), at, Some(E::SCHEMA)).await
}

/// Returns the copies and list entries that a primary should have, as the version that wrote the primary declares
/// them. Returns `None` for a row of another type.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` for an unknown version, and with `is_decode` if the row does not fit its
/// type.
pub(crate) fn derive_rows_of_primary<E: TableEntity>(
    primary: &Row,
    tokens: &TokenMaker,
) -> Result<Option<EntityRows>> {
    E::SCHEMA
        .derive_rows(primary, tokens)
        .and_then(|derived| derived.into_known_rows(E::SCHEMA))
        .map_err(|error| error_with_row_keys(primary, error))
}

/// Derives the copies and list entries of a primary. Returns `Derived::NotOurs` if `primary` is `None`.
pub(crate) fn derive_existing<E: TableEntity>(
    primary: Option<&Row>,
    tokens: &TokenMaker,
) -> Result<Derived> {
    match primary {
        Some(row) => {
            E::SCHEMA.derive_rows(row, tokens).map_err(|error| error_with_row_keys(row, error))
        }
        None => Ok(Derived::NotOurs),
    }
}

/// Returns writes that only change the primary's ETag: one, or one for each part of a wide entity, with a new
/// generation. They make a transaction fail if the primary was changed after it was read.
pub(crate) fn touch_primary<E: TableEntity>(
    table: &Table<E>,
    primary: &Row,
) -> Result<Vec<OperationToSeal>> {
    let mut row = Row::build(primary.partition_key(), primary.row_key());
    let mut properties = primary.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        // Choose a property that is stored unencrypted, because an encrypted one would have to be encrypted
        // again.
        let is_sealed =
            E::SCHEMA.sealed_column(&name).is_some() || primary.has_encrypted_name(&name);
        if !is_sealed {
            row.put(&name, value);
            break;
        }
    }
    // Merging a value that is already stored only changes the ETag.
    let touch = Operation::merge(row.finish()?, Condition::for_etag(primary.etag()));
    // All parts get the same new generation, which keeps them together.
    let generation = table.client.store().random.random_id();
    let touches = wide::split_operation(Some(E::SCHEMA), &touch, &generation, &HashMap::new())?;
    let touches = touches.into_owned().into_iter();
    Ok(touches.map(|touch| OperationToSeal::new(touch, StoredAs::Framework)).collect())
}
