//! Derives copies and list entries from a stored primary. Also reads the rows that tell which
//! entity has taken a unique key.

use super::rows::Store;
use crate::{
    address::RowAt,
    entity::{CopyFamily, EntityRows, Schema},
    error::Result,
    plan::outbox::{CopyAddress, claim_row_key, copy_with_owner, is_claim_alive},
    row::{ETag, Row},
};

/// Returns the rows that a stored primary derives: decrypts it, derives them by the version of the
/// type that wrote it, and fills in the blind tokens of their keys. `None` if the row is not of the
/// type.
pub(crate) async fn derive_stored(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    primary: &Row,
) -> Result<Option<EntityRows>> {
    let plain = store.decrypt_typed(table, primary.clone(), schema).await?;
    // Blind tokens are made with the client's index key, which a type without them does not need.
    let tokens = store.tokens_of(schema).await?;
    schema.derive(&plain, &tokens)?.into_known_rows(schema)
}

/// A copy that a stored primary derives, and the primary's ETag.
#[derive(Debug, Clone)]
pub(crate) struct DerivedCopy {
    pub(crate) kinds: CopyFamily,
    pub(crate) copy: Row,
    version: ETag,
}

impl DerivedCopy {
    /// Returns the row to be stored: the copy with its owner and the primary's ETag.
    pub(crate) fn to_row(&self, primary: RowAt<'_>) -> Result<Row> {
        copy_with_owner(&self.copy, self.kinds, primary, Some(&self.version))
    }
}

/// Reads a primary and returns the copy that it derives for an address. `None` if the primary or its
/// table is missing, or if it derives no such copy.
pub(crate) async fn derived_copy(
    store: &Store,
    primary: RowAt<'_>,
    schema: &'static Schema,
    address: &CopyAddress,
) -> Result<Option<DerivedCopy>> {
    let Some(row) = store.row_or_no_table(primary).await? else { return Ok(None) };
    // Without an ETag the copy could not say which version it was derived from.
    let Some(version) = row.etag() else { return Ok(None) };
    let rows = derive_stored(store, primary.table, schema, &row).await?;
    let copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let is_at_address = |copy: &_| address.is_for_copy(primary.table, copy);
    let Some(copy) = copies.into_iter().find(is_at_address) else { return Ok(None) };
    let Some(family) = schema.primary_of_copy(copy.family) else { return Ok(None) };
    let kinds = CopyFamily { copy: copy.family, primary: family, schema };
    Ok(Some(DerivedCopy { kinds, copy: copy.row, version }))
}

/// Returns whether the transaction of a claim may still be committed, given the claim's id and a
/// primary in the claim's partition. `None` if the claim is gone.
pub(crate) async fn is_claim_pending(
    store: &Store,
    primary: RowAt<'_>,
    id: &str,
) -> Result<Option<bool>> {
    let claim = store.row_or_no_table(primary.with_row_key(&claim_row_key(id))).await?;
    claim.as_ref().map(is_claim_alive).transpose()
}
