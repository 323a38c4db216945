//! Dirty rows that a worker has read: each is parsed once, and each of its addresses is looked up once.

use super::{partition::OutboxRow, state::Worker};
use crate::{
    address::{Names, RowAt},
    error::Result,
    outbox::known_types::Named,
    plan::outbox::{CopyAddress, ListAddress, StoredDirtyRow},
};

/// A parsed dirty row, with the copy, list or blob that each of its addresses belongs to.
#[derive(Debug)]
pub(super) struct ParsedDirtyRow {
    /// The row as it was read, with its age.
    pub(super) read: OutboxRow,
    pub(super) dirty: StoredDirtyRow,
    /// The lookup result of each address, in the order of the addresses.
    pub(super) named: Vec<Named>,
}

impl ParsedDirtyRow {
    /// Returns the address of the row's primary, which is in `table`.
    pub(super) fn primary<'r>(&'r self, names: Names, table: &'r str) -> RowAt<'r> {
        names.row_at(table, self.dirty.row.partition_key(), &self.dirty.primary)
    }

    /// Returns the addresses, each with what it names.
    pub(super) fn named_addresses(&self) -> impl Iterator<Item = (&CopyAddress, Named)> {
        self.dirty.addresses.iter().zip(self.named.iter().copied())
    }

    /// Returns the addresses of the remote lists that this client can write.
    pub(super) fn writable_lists(&self) -> Vec<ListAddress> {
        let is_list = |named| matches!(named, Named::List(_));
        let lists = self.named_addresses().filter(|(_, named)| is_list(*named));
        lists.map(|(address, _)| address.assume_list_address()).collect()
    }

    /// Returns whether this program knows none of the names in the row. A pass then needs no request.
    pub(super) fn is_wholly_unknown(&self) -> bool {
        !self.named.is_empty() && self.named.iter().all(|named| matches!(named, Named::Unknown))
    }
}

impl Worker {
    /// Parses a dirty row of `table` and looks up what its addresses name.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if a property that should contain an address does not.
    pub(super) fn parse_dirty_row(&self, table: &str, read: &OutboxRow) -> Result<ParsedDirtyRow> {
        let names = self.store().names();
        let dirty = StoredDirtyRow::from_row(names, read.row.clone())?;
        let owner = names.row_at(table, dirty.row.partition_key(), &dirty.primary);
        let named = dirty.addresses.iter().map(|address| self.outbox().named(owner, address));
        let named = named.collect();
        Ok(ParsedDirtyRow { read: read.clone(), dirty, named })
    }
}
