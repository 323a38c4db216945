//! What a worker counts.

use std::time::Duration;

use tokio::time::Instant;

/// What a worker has done since it was made, and what was open when it looked last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Rows of work that were open when they were looked at last, without those that only wait for
    /// their second look.
    pub open: u64,
    /// Rows whose work is done, and that wait until nobody can undo it any more.
    pub waiting: u64,
    /// Rows of types or messages that this program does not know, and rows of the directory, and
    /// fences, that are damaged: each holds up nothing but itself.
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
    /// Messages that were received from queues, each time that they were.
    pub received: u64,
    /// Partitions that left the directory.
    pub closed: u64,
}

impl WorkerStats {
    /// The same with what a partition looked like.
    pub(super) fn with(mut self, visit: &Visit) -> Self {
        self.open += visit.open;
        self.waiting += visit.waiting;
        self.unknown += visit.unknown;
        self.oldest = self.oldest.max(visit.oldest.filter(|_| visit.open > 0));
        self
    }
}

/// What a partition looked like when it was visited last, and when it is worth another visit.
#[derive(Debug, Clone, Default)]
pub(super) struct Visit {
    pub(super) open: u64,
    pub(super) waiting: u64,
    pub(super) unknown: u64,
    pub(super) oldest: Option<Duration>,
    pub(super) next: Option<Instant>,
}

impl Visit {
    /// A row that is open.
    pub(super) fn meet(&mut self, age: Option<Duration>) {
        self.open += 1;
        self.oldest = self.oldest.max(age);
    }

    /// Some rows that are not open any more.
    pub(super) fn leave(&mut self, rows: u64) {
        self.open = self.open.saturating_sub(rows);
    }

    /// Another visit is worth it by then.
    pub(super) fn again_in(&mut self, wait: Duration) {
        let next = Instant::now() + wait;
        self.next = Some(self.next.map_or(next, |earlier| earlier.min(next)));
    }
}
