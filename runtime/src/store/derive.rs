//! Derives copies and list entries from a stored primary, and reads the rows that determine which entity has a unique
//! key.

use super::{rows::Store, sealing::open::ReadAs, wide_rows::join_parts_of_entity};
use crate::{
    address::{RowAddress, RowAt},
    backend::ReadRequest,
    entity::{CopyAndPrimaryFamily, EntityRows, Schema},
    error::Result,
    plan::{
        outbox::{CopyAddress, claim_row_key, copy_with_owner, is_claim_alive},
        wide,
    },
    row::{ETag, Row},
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

/// A copy that a stored primary derives, with the primary's address and ETag.
#[derive(Debug, Clone)]
pub(crate) struct DerivedCopy {
    pub(crate) primary: RowAddress,
    pub(crate) kinds: CopyAndPrimaryFamily,
    pub(crate) copy: Row,
    version: ETag,
}

impl DerivedCopy {
    /// Returns the row to store: the copy, with properties for its primary and the primary's ETag.
    pub(crate) fn to_row(&self) -> Result<Row> {
        copy_with_owner(&self.copy, self.kinds, self.primary.as_row_at(), Some(&self.version))
    }
}

/// Whether the primary in an index row still derives the key of the index row.
#[derive(Debug)]
pub(crate) enum OwnerDerivesKey {
    /// The primary derives the key.
    Holds(Box<DerivedCopy>),
    /// The primary does not exist or does not derive the key.
    // A missing table counts too. A table that is later created under its name contains neither the primary nor
    // the claim's row, so no transaction under the claim can commit there.
    Nobody,
}

/// Reads the primary in a row and returns whether it derives the copy at an address.
pub(crate) async fn find_owner_holding_key(
    store: &Store,
    named: RowAt<'_>,
    schema: &'static Schema,
    address: &CopyAddress,
) -> Result<OwnerDerivesKey> {
    let row = match read_primary_to_derive(store, named, Some(schema)).await {
        Err(error) if error.is_table_missing() => None,
        row => row?,
    };
    let Some(row) = row else { return Ok(OwnerDerivesKey::Nobody) };
    Ok(match derived_copy(store, named, &row, schema, address).await? {
        Some(held) => OwnerDerivesKey::Holds(Box::new(held)),
        None => OwnerDerivesKey::Nobody,
    })
}

/// Returns the copy that a primary derives for an address, if it derives one.
async fn derived_copy(
    store: &Store,
    primary: RowAt<'_>,
    row: &Row,
    schema: &'static Schema,
    address: &CopyAddress,
) -> Result<Option<DerivedCopy>> {
    // Without an ETag, the copy could not record the version it was derived from.
    let Some(version) = row.etag() else { return Ok(None) };
    let rows = derive_stored_primary(store, primary.table.as_str(), schema, row).await?;
    let copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let is_at_address = |copy: &_| address.is_same_address_as_copy(primary.table, copy);
    let Some(copy) = copies.into_iter().find(is_at_address) else { return Ok(None) };
    let Some(family) = schema.primary_family_of_copy(copy.family) else { return Ok(None) };
    let kinds = CopyAndPrimaryFamily { copy: copy.family, primary: family, schema };
    let primary = primary.to_owned();
    Ok(Some(DerivedCopy { primary, kinds, copy: copy.row, version }))
}

/// Whether the transaction that a claim row reserves unique keys for may still be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// The transaction of the claim may still be committed.
    Alive,
    /// The claim is marked dead, and its transaction can no longer be committed.
    Dead,
    /// The claim does not exist: its transaction was committed, it was resolved, or its table was deleted.
    Gone,
}

/// Reads the row of claim `id` and returns whether the claim is alive. `named` is the address of any row in the claim's
/// partition, such as the primary that claims a key. Its RowKey is not used.
pub(crate) async fn read_claim_state(
    store: &Store,
    named: RowAt<'_>,
    id: &str,
) -> Result<ClaimState> {
    read_claim(store, named, id).await.map(|(state, _)| state)
}

/// Reads the row of claim `id` as [`read_claim_state`] does, and returns it with its state.
pub(crate) async fn read_claim(
    store: &Store,
    named: RowAt<'_>,
    id: &str,
) -> Result<(ClaimState, Option<Row>)> {
    let row_key = claim_row_key(id);
    let claim = store.row_if_table_exists(named.with_row_key(&row_key)).await?;
    let state = match &claim {
        Some(claim) if is_claim_alive(claim)? => ClaimState::Alive,
        Some(_) => ClaimState::Dead,
        None => ClaimState::Gone,
    };
    Ok((state, claim))
}
