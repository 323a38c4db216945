//! What a worker counts.

use std::time::Duration;

/// What a worker has done since it was made, and what was open when it looked last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Rows of work that were open when they were looked at last, without those that only wait for
    /// their second look.
    pub open: u64,
    /// Rows whose work is done, and that wait until nobody can undo it any more.
    pub waiting: u64,
    /// Rows of types or messages that this program does not know.
    pub unknown: u64,
    /// The age of the oldest row that was open.
    pub oldest: Option<Duration>,
    /// Rows of work that are finished and gone.
    pub applied: u64,
    /// Rows elsewhere that were written or deleted.
    pub written: u64,
    /// Work that was begun again because another writer was first.
    pub retried: u64,
    /// Work that was put into the poison table.
    pub poisoned: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Partitions that left the directory.
    pub closed: u64,
}

impl WorkerStats {
    /// Before a new look at everything that is open.
    pub(super) fn look_again(&mut self) {
        (self.open, self.waiting, self.unknown, self.oldest) = (0, 0, 0, None);
    }

    /// A row that is open.
    pub(super) fn meet(&mut self, age: Option<Duration>) {
        self.open += 1;
        self.oldest = self.oldest.max(age);
    }
}
