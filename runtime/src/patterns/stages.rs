//! The stages of a commit that wait for requests before its transaction is sent.

use crate::{outbox::claims::KEYS_AT_ONCE, store::lists::LISTS_AT_ONCE};

/// The stages of a commit, which run before its transaction is sent. The requests of one stage are sent together,
/// unless a field's description says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stages {
    /// Whether stored primaries are read.
    pub(crate) primaries: bool,
    /// Whether blobs are written.
    pub(crate) uploads: bool,
    /// Whether local lists are read.
    pub(crate) lists: bool,
    /// The number of remote lists that are read.
    pub(crate) remote_lists: usize,
    /// The number of entities whose remote copies are read, which happens entity after entity.
    pub(crate) remote_copies: usize,
    /// The number of unique values that are reserved after their claim.
    pub(crate) reserved: usize,
}

impl Stages {
    /// Returns how many round trips the stages take, without the transaction.
    pub(crate) fn round_trips(self) -> usize {
        let one = [self.primaries, self.uploads, self.lists, self.reserved > 0];
        one.into_iter().filter(|stage| *stage).count()
            + self.remote_lists.div_ceil(LISTS_AT_ONCE)
            + self.remote_copies
            + self.reserved.div_ceil(KEYS_AT_ONCE)
    }

    /// Returns the stages of two writes that are committed together.
    pub(super) const fn join(self, other: Self) -> Self {
        Self {
            primaries: self.primaries || other.primaries,
            uploads: self.uploads || other.uploads,
            lists: self.lists || other.lists,
            remote_lists: self.remote_lists + other.remote_lists,
            remote_copies: self.remote_copies + other.remote_copies,
            reserved: self.reserved + other.reserved,
        }
    }

    /// Returns the stages of `entities` equal writes in one transaction.
    pub(super) const fn for_equal_writes(self, entities: usize) -> Self {
        Self {
            remote_lists: self.remote_lists.saturating_mul(entities),
            remote_copies: self.remote_copies.saturating_mul(entities),
            reserved: self.reserved.saturating_mul(entities),
            ..self
        }
    }
}
