//! Writes the rows of an entity from the keys and properties that its derive generates.

use super::{BlobValue, CopyRow, EntityRows, ListEntry, RemoteList, TableEntity};
use crate::{
    error::Result,
    key::{Family, FamilyKind},
    row::Row,
};

/// An entity that can write the keys and properties of each of its row families: what
/// `#[derive(TableEntity)]` generates. One shared function makes rows of them, so that each derive
/// adds little code.
pub trait EncodeRows {
    /// Returns the PartitionKey of the entity's row in that row family.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large`, naming the field, for a value that the key cannot hold.
    fn partition_key(&self, family: &'static Family) -> Result<String>;

    /// Returns the RowKey of the entity's row in that row family.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large`, naming the field, for a value that the key cannot hold.
    fn row_key(&self, family: &'static Family) -> Result<String>;

    /// Returns the entity's row in that row family, with these keys.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large`, naming the field, for values that cannot be stored.
    fn row(&self, family: &'static Family, partition_key: &str, row_key: &str) -> Result<Row>;

    /// Returns whether the entity has a row in that row family: `when` of an index.
    fn has_row(&self, family: &'static Family) -> bool {
        let _ = family;
        true
    }

    /// Returns the values of the fields with `#[table(blob)]`.
    fn blobs(&self) -> Vec<BlobValue> {
        Vec::new()
    }
}

/// Returns every row of an entity: the primary, its index copies, its entries in lists.
///
/// # Errors
///
/// `is_invalid` and `is_too_large`, naming the field, for values that cannot be stored.
pub fn rows_with(
    entity: &dyn EncodeRows,
    primary: Row,
    families: &'static [Family],
) -> Result<EntityRows> {
    let mut rows = EntityRows { blobs: entity.blobs(), ..EntityRows::only(primary) };
    let indexes = families.iter().filter(|family| !family.is_primary());
    for family in indexes.filter(|family| entity.has_row(family)) {
        match (family.kind, family.is_remote) {
            (FamilyKind::List, true) => rows.remote_lists.push(RemoteList {
                family,
                partition_key: entity.partition_key(family)?,
                row_key: entity.row_key(family)?,
            }),
            (FamilyKind::List, false) => rows.local_list_entries.push(ListEntry {
                family,
                row_key: entity.row_key(family)?,
                id: rows.primary.row_key().to_owned(),
            }),
            (_, true) => {
                let partition_key = entity.partition_key(family)?;
                let row = entity.row(family, &partition_key, &entity.row_key(family)?)?;
                rows.remote_copies.push(CopyRow { family, row });
            }
            // A local copy shares the primary's PartitionKey, which is known.
            (_, false) => {
                let partition_key = rows.primary.partition_key();
                let row = entity.row(family, partition_key, &entity.row_key(family)?)?;
                rows.local_copies.push(CopyRow { family, row });
            }
        }
    }
    Ok(rows)
}

/// Returns the primary row of an entity.
///
/// # Errors
///
/// `is_invalid` and `is_too_large`, naming the field, for values that cannot be stored.
pub fn primary_row<E: TableEntity + EncodeRows>(
    entity: &E,
    family: &'static Family,
) -> Result<Row> {
    entity.row(family, &entity.partition_key(family)?, &entity.row_key(family)?)
}
