//! The keys of unique remote indexes that one transaction takes and releases.

use crate::{address::RowAddress, entity::CopyFamily, plan::outbox::CopyAddress, row::Row};

/// A key that the transaction takes.
#[derive(Debug, Clone)]
pub(crate) struct WantedKey {
    /// The primary, by its place in the commit, and the row elsewhere by its place there.
    pub(crate) at: (usize, usize),
    pub(crate) name: CopyAddress,
    pub(crate) kinds: CopyFamily,
    pub(crate) primary: String,
    pub(crate) copy: Row,
}

/// A primary that leaves a key.
#[derive(Debug, Clone)]
pub(crate) struct ReleasedKey {
    pub(crate) place: RowAddress,
    /// Which one; `None`: all that it has, since it moves.
    pub(crate) name: Option<CopyAddress>,
}
