//! The keys of unique remote indexes that one transaction takes and releases.

use crate::{address::RowAddress, entity::CopyFamily, plan::outbox::CopyAddress, row::Row};

/// A key that a transaction takes for an entity.
#[derive(Debug, Clone)]
pub(crate) struct WantedKey {
    /// The position of the entity among the transaction's dirty rows, and of the copy among the
    /// entity's copy changes.
    pub(crate) position: (usize, usize),
    pub(crate) address: CopyAddress,
    pub(crate) kinds: CopyFamily,
    /// The RowKey of the entity's primary.
    pub(crate) primary: String,
    pub(crate) copy: Row,
}

/// A key that an entity gives up.
#[derive(Debug, Clone)]
pub(crate) struct ReleasedKey {
    pub(crate) primary: RowAddress,
    /// The key; `None` stands for all keys of the entity, which moves away.
    pub(crate) address: Option<CopyAddress>,
}
