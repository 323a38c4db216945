//! Every row that an entity is stored as.

use crate::{key::Family, row::Row};

/// The primary row of an entity, its copies, and its entries in lists.
#[derive(Debug, Clone)]
pub struct EntityRows {
    /// The entity's own row.
    pub primary: Row,
    /// Its secondary-index copies in the primary's partition.
    pub copies: Vec<CopyRow>,
    /// Its copies in other partitions and tables.
    pub elsewhere: Vec<CopyRow>,
    /// Its entries in index entities.
    pub entries: Vec<ListEntry>,
    /// The lists elsewhere that it is in.
    pub listed: Vec<Listed>,
}

impl EntityRows {
    /// The rows of an entity without copies and lists.
    pub const fn only(primary: Row) -> Self {
        Self {
            primary,
            copies: Vec::new(),
            elsewhere: Vec::new(),
            entries: Vec::new(),
            listed: Vec::new(),
        }
    }
}

impl EntityRows {
    /// The same rows, encrypted where the row that they follow is.
    pub(crate) fn encrypted_as(mut self, before: &Row) -> Self {
        self.primary = self.primary.encrypted_as(before);
        for copy in self.copies.iter_mut().chain(&mut self.elsewhere) {
            copy.row = copy.row.clone().encrypted_as(before);
        }
        self
    }
}

/// A secondary-index copy.
#[derive(Debug, Clone)]
pub struct CopyRow {
    /// The index.
    pub family: &'static Family,
    /// The copy.
    pub row: Row,
}

/// An entry of an index entity: the list's row, and the RowKey of the entity in it.
#[derive(Debug, Clone)]
pub struct ListEntry {
    /// The list.
    pub family: &'static Family,
    /// The RowKey of the list's head row.
    pub row_key: String,
    /// The RowKey of the entity.
    pub id: String,
}

/// An index entity in another partition or table, or in a blob: where it is. Its entry is what leads
/// to the entity.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The list.
    pub family: &'static Family,
    /// The PartitionKey of the list's head row.
    pub partition_key: String,
    /// The RowKey of the list's head row.
    pub row_key: String,
}

impl PartialEq for Listed {
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
        self.row_key == other.row_key && self.id == other.id
    }
}
