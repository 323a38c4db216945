//! Defines the set of rows that store one entity.

use super::{BlobFieldValue, blob::pointing_to_stored_blobs};
use crate::{error::Result, key::RowFamily, row::Row};

/// All rows of an entity: its primary row, its copies, and its entries in lists.
#[derive(Debug, Clone)]
pub struct EntityRows {
    /// The entity's own row.
    pub primary: Row,
    /// Its local secondary-index copies, in the primary's partition.
    pub local_copies: Vec<CopyRow>,
    /// Its remote copies, in other partitions and tables.
    pub remote_copies: Vec<CopyRow>,
    /// Its entries in local lists, in the primary's partition.
    pub local_list_entries: Vec<ListEntry>,
    /// The remote lists that contain the entity.
    pub remote_lists: Vec<RemoteListKeys>,
    /// The values of the entity's fields with `#[table(blob)]`.
    pub blobs: Vec<BlobFieldValue>,
}

impl EntityRows {
    /// Returns the rows of an entity without copies and lists.
    pub const fn from_primary_only(primary: Row) -> Self {
        Self {
            primary,
            local_copies: Vec::new(),
            remote_copies: Vec::new(),
            local_list_entries: Vec::new(),
            remote_lists: Vec::new(),
            blobs: Vec::new(),
        }
    }
}

impl EntityRows {
    /// Marks the properties as encrypted that are marked in `before`, the primary that these rows replace or derive
    /// from. A row with marks keeps its own.
    pub(crate) fn inherit_encrypted_names_of(mut self, before: &Row) -> Self {
        self.primary = self.primary.inherit_encrypted_names_of(before);
        for copy in self.local_copies.iter_mut().chain(&mut self.remote_copies) {
            copy.row = copy.row.clone().inherit_encrypted_names_of(before);
        }
        self
    }

    /// Returns the PartitionKey and RowKey of the entity's copies in an index, or of the lists in a family that
    /// contain the entity.
    pub(crate) fn keys_in_family(&self, family: &RowFamily) -> Vec<(&str, &str)> {
        let copies = self.local_copies.iter().chain(&self.remote_copies);
        let copies = copies.map(|copy| (copy.family, copy.row.keys()));
        let partition_key = self.primary.partition_key();
        let local = self.local_list_entries.iter();
        let local = local.map(|entry| (entry.family, (partition_key, &*entry.row_key)));
        let remote = self.remote_lists.iter();
        let remote = remote.map(|list| (list.family, (&*list.partition_key, &*list.row_key)));
        let all = copies.chain(local).chain(remote);
        all.filter(|(of, _)| of.name == family.name).map(|(_, keys)| keys).collect()
    }

    /// Replaces the values of blob fields that `newer` contains, and keeps all others.
    pub(crate) fn with_newer_blob_values(mut self, newer: &[BlobFieldValue]) -> Self {
        self.blobs.retain(|value| newer.iter().all(|newer| newer.names != value.names));
        self.blobs.extend_from_slice(newer);
        self
    }

    /// Sets the name, hash and key of stored blobs in every row that points to them.
    pub(crate) fn pointing_to_stored_blobs(mut self, stored: &[BlobFieldValue]) -> Result<Self> {
        self.primary = pointing_to_stored_blobs(&self.primary, stored)?;
        for copy in self.local_copies.iter_mut().chain(&mut self.remote_copies) {
            copy.row = pointing_to_stored_blobs(&copy.row, stored)?;
        }
        Ok(self.with_newer_blob_values(stored))
    }
}

/// A secondary-index copy.
#[derive(Debug, Clone)]
pub struct CopyRow {
    /// The index that the copy belongs to.
    pub family: &'static RowFamily,
    /// The copy's row.
    pub row: Row,
}

/// An entry of a local list: the list, and the RowKey of the entity in it.
#[derive(Debug, Clone)]
pub struct ListEntry {
    /// The list's row family.
    pub family: &'static RowFamily,
    /// The RowKey of the list's head row, which is the row that exists even if all ids fit into it.
    pub row_key: String,
    /// The RowKey of the entity.
    pub id: String,
}

/// The keys of a remote list that contains the entity. The list is in another partition or table, or in a blob,
/// and contains the entity's PartitionKey and RowKey.
#[derive(Debug, Clone)]
pub struct RemoteListKeys {
    /// The list's row family.
    pub family: &'static RowFamily,
    /// The PartitionKey of the list's head row.
    pub partition_key: String,
    /// The RowKey of the list's head row.
    pub row_key: String,
}

impl PartialEq for RemoteListKeys {
    fn eq(&self, other: &Self) -> bool {
        let place = |listed: &Self| (listed.family.table, listed.family.in_blob);
        self.family.name == other.family.name
            && place(self) == place(other)
            && self.partition_key == other.partition_key
            && self.row_key == other.row_key
    }
}

impl PartialEq for ListEntry {
    fn eq(&self, other: &Self) -> bool {
        // Two lists of one type never have the same RowKey, so the row families need no comparison.
        self.row_key == other.row_key && self.id == other.id
    }
}
