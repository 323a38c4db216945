//! Writes the rows of an entity from the keys and properties that its derive generates.

use super::{BlobFieldValue, CopyRow, EntityRows, ListEntry, PropertyWriter, RemoteListKeys};
use crate::{
    error::Result,
    key::{Family, FamilyKind, KeyWriter},
    row::Row,
};

/// An entity that can write the keys and properties of each of its row families: what
/// `#[derive(TableEntity)]` generates. One shared function makes rows of them, so that each derive
/// adds little code.
pub trait EncodeRows {
    /// Writes the parts of the PartitionKey of the entity's row in that row family.
    fn write_partition_key(&self, family: &'static Family, key: &mut KeyWriter);

    /// Writes the parts of the RowKey of the entity's row in that row family.
    fn write_row_key(&self, family: &'static Family, key: &mut KeyWriter);

    /// Writes the properties of the entity's row in that row family.
    fn write_properties(&self, family: &'static Family, out: &mut PropertyWriter<'_>);

    /// Returns whether the entity has a row in that row family. For an index with a condition, such
    /// as `when = Employee::is_reachable`, the condition decides.
    fn has_row(&self, family: &'static Family) -> bool {
        let _ = family;
        true
    }

    /// Returns the values of the fields with `#[table(blob)]`.
    fn blobs(&self) -> Vec<BlobFieldValue> {
        Vec::new()
    }
}

/// Returns the PartitionKey of an entity's row in a row family.
///
/// # Errors
///
/// `is_invalid` and `is_too_large`, naming the field, for a value that the key cannot hold.
pub(crate) fn partition_key_in_family(
    entity: &dyn EncodeRows,
    family: &'static Family,
) -> Result<String> {
    let mut key = KeyWriter::new(&family.partition, "PartitionKey");
    entity.write_partition_key(family, &mut key);
    key.finish()
}

/// Returns the RowKey of an entity's row in a row family.
///
/// # Errors
///
/// `is_invalid` and `is_too_large`, naming the field, for a value that the key cannot hold.
pub(crate) fn row_key_in_family(
    entity: &dyn EncodeRows,
    family: &'static Family,
) -> Result<String> {
    let mut key = KeyWriter::new(&family.row, "RowKey");
    entity.write_row_key(family, &mut key);
    key.finish()
}

/// Returns the row of an entity in a row family, under the given keys.
fn row_of(
    entity: &dyn EncodeRows,
    family: &'static Family,
    partition_key: &str,
    row_key: &str,
) -> Result<Row> {
    let mut row = Row::build(partition_key, row_key);
    let mut out = match family.is_primary() {
        true => PropertyWriter::new(&mut row),
        false => PropertyWriter::for_copy(&mut row),
    };
    entity.write_properties(family, &mut out);
    out.return_first_error()?;
    row.finish()
}

/// Returns every row of an entity: the primary, its index copies, its entries in lists.
///
/// # Errors
///
/// `is_invalid` and `is_too_large`, naming the field, for values that cannot be stored.
pub(super) fn all_rows_of_entity(
    entity: &dyn EncodeRows,
    primary: Row,
    families: &'static [Family],
) -> Result<EntityRows> {
    let mut rows = EntityRows { blobs: entity.blobs(), ..EntityRows::from_primary_only(primary) };
    let indexes = families.iter().filter(|family| !family.is_primary());
    for family in indexes.filter(|family| entity.has_row(family)) {
        match (family.kind, family.is_remote) {
            (FamilyKind::List, true) => rows.remote_lists.push(RemoteListKeys {
                family,
                partition_key: partition_key_in_family(entity, family)?,
                row_key: row_key_in_family(entity, family)?,
            }),
            (FamilyKind::List, false) => rows.local_list_entries.push(ListEntry {
                family,
                row_key: row_key_in_family(entity, family)?,
                // A local list is in the primary's partition, so the RowKey alone names the entity.
                id: rows.primary.row_key().to_owned(),
            }),
            (_, true) => {
                let partition_key = partition_key_in_family(entity, family)?;
                let row =
                    row_of(entity, family, &partition_key, &row_key_in_family(entity, family)?)?;
                rows.remote_copies.push(CopyRow { family, row });
            }
            // A local copy shares the primary's PartitionKey, which is known.
            (_, false) => {
                let partition_key = rows.primary.partition_key();
                let row =
                    row_of(entity, family, partition_key, &row_key_in_family(entity, family)?)?;
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
pub(super) fn primary_row(entity: &dyn EncodeRows, family: &'static Family) -> Result<Row> {
    row_of(
        entity,
        family,
        &partition_key_in_family(entity, family)?,
        &row_key_in_family(entity, family)?,
    )
}

/// Returns the keys of the primary that a copy belongs to, from the writers of both keys.
/// `TableEntity::owner_of` calls it.
///
/// # Errors
///
/// The error of the first part of a key that could not be written.
pub fn finish_owner_key_writers(
    partition_key: KeyWriter,
    row_key: KeyWriter,
) -> Result<Option<(String, String)>> {
    Ok(Some((partition_key.finish()?, row_key.finish()?)))
}
