//! Derives copies and list entries from a stored primary.

use super::{rows::Store, sealing::open::ReadAs, wide_rows::join_parts_of_entity};
use crate::{
    address::RowAt,
    backend::ReadRequest,
    entity::{EntityRows, Schema},
    error::Result,
    plan::wide,
    row::Row,
};

/// Reads a primary to derive rows from it. The row is as stored, or joined and decrypted if `schema` is wide.
pub(crate) async fn read_primary_to_derive(
    store: &Store,
    at: RowAt<'_>,
    schema: Option<&'static Schema>,
) -> Result<Option<Row>> {
    let [table, partition_key, row_key] = at.table_and_key_texts();
    match schema.filter(|schema| schema.is_wide() && wide::is_key_of_first_part(row_key)) {
        Some(schema) => {
            let read = ReadRequest { table, partition_key, row_key, select: None };
            store.read_decrypted(read, ReadAs::Typed(schema)).await
        }
        None => store.read_row(at).await,
    }
}

/// A stored primary that has not been decrypted.
#[derive(Debug)]
pub(crate) struct SealedPrimary {
    /// The row. For a wide entity, its joined parts.
    pub(crate) row: Row,
    /// The parts of a wide entity, each encrypted for its own keys. Empty if the entity is not wide.
    parts: Vec<(usize, Option<Row>)>,
}

/// Reads a primary of type `schema` without decrypting it. Reads all parts of a wide entity with one query.
pub(crate) async fn read_sealed_primary(
    store: &Store,
    at: RowAt<'_>,
    schema: &'static Schema,
) -> Result<Option<SealedPrimary>> {
    if !(schema.is_wide() && wide::is_key_of_first_part(at.row_key)) {
        let row = store.read_row(at).await?;
        return Ok(row.map(|row| SealedPrimary { row, parts: Vec::new() }));
    }
    let keys = (at.partition_key, at.row_key);
    let parts = store.read_sealed_parts(at.table.as_str(), keys, schema).await?;
    let row = join_parts_of_entity(schema, at.table.as_str(), keys, &parts)?;
    Ok(row.map(|row| SealedPrimary { row, parts }))
}

/// Decrypts a primary of type `schema`. For a wide entity, decrypts each part and joins the parts.
///
/// # Errors
///
/// Fails if the row cannot be decrypted, and with `is_corrupt` if a part is missing or was not written with the others.
pub(crate) async fn decrypt_primary(
    store: &Store,
    table: &str,
    sealed: &SealedPrimary,
    schema: &'static Schema,
) -> Result<Row> {
    if sealed.parts.is_empty() {
        return store.decrypt_row_of_type(table, sealed.row.clone(), schema).await;
    }
    let parts = store.decrypt_each_part(table, sealed.parts.clone(), schema, None).await?;
    let opened = store.join_decrypted_parts(schema, table, sealed.row.keys(), &parts)?;
    Ok(opened.unwrap_or_else(|| sealed.row.clone()))
}

/// Returns the rows that a stored primary derives. `primary` is the row from [`read_primary_to_derive`]. Decrypts the
/// row, and uses the declarations of the version that wrote it. Returns `None` if the row is of another type.
pub(crate) async fn derive_stored_primary(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    primary: &Row,
) -> Result<Option<EntityRows>> {
    // A wide primary was decrypted when its parts were joined.
    let plain = if schema.is_wide() {
        primary.clone()
    } else {
        store.decrypt_row_of_type(table, primary.clone(), schema).await?
    };
    // Blind tokens need the client's blind token key. A type without tokens does not fetch it.
    let tokens = store.token_maker_of_type(schema).await?;
    let derived =
        store.run_with_blind_token_keys(&tokens, || schema.derive_rows(&plain, &tokens)).await?;
    derived.into_known_rows(schema)
}
