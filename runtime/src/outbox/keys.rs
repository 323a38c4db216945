//! The keys of unique remote indexes that a transaction takes and releases.

use crate::{
    address::RowAddress, entity::CopyAndPrimaryFamily, plan::outbox::CopyAddress, row::Row,
};

/// A unique key that a transaction takes for an entity.
#[derive(Debug, Clone)]
pub(crate) struct WantedUniqueKey {
    /// The position of the entity among the transaction's dirty rows, and of the copy among the entity's copy
    /// changes.
    pub(crate) position: (usize, usize),
    pub(crate) address: CopyAddress,
    pub(crate) kinds: CopyAndPrimaryFamily,
    /// The RowKey of the entity's primary.
    pub(crate) primary: String,
    pub(crate) copy: Row,
}

impl WantedUniqueKey {
    /// Returns whether both ask to reserve the same unique key for the same entity. Their copies may differ.
    pub(crate) fn is_same_key(&self, other: &Self) -> bool {
        self.address == other.address && self.primary == other.primary
    }
}

/// A unique key that an entity releases.
#[derive(Debug, Clone)]
pub(crate) struct ReleasedUniqueKey {
    pub(crate) primary: RowAddress,
    /// The released key, or `None` for all keys of an entity that moves away.
    pub(crate) address: Option<CopyAddress>,
}
