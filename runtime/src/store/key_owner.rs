//! Reads the primary in an index row, to find out whether it has the unique key of that row.

use super::{
    derive::{derive_stored_primary, read_primary_to_derive},
    rows::Store,
};
use crate::{
    address::{RowAddress, RowAt},
    entity::{CopyAndPrimaryFamily, Schema},
    error::Result,
    plan::outbox::{CopyAddress, copy_with_owner},
    row::{ETag, Row},
};

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
