//! The counts of a worker: in total, and of the last visit of each partition.

use std::time::Duration;

use tokio::time::Instant;

use super::visit::PartitionVisit;
use crate::error::{Error, ErrorKind};

/// The work that a worker has done since it was created, and the open work that it saw at its last
/// visits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Number of outbox rows with open work at the last look, without those in
    /// [`waiting`](Self::waiting).
    pub open: u64,
    /// Number of outbox rows whose work is done, and that stay until no delayed writer can undo it
    /// (the second look).
    pub waiting: u64,
    /// Number of outbox rows and messages of types that this program does not know, and of damaged
    /// outbox rows, directory markers and fences. Each of them holds up nothing but itself.
    pub unknown: u64,
    /// The age of the oldest outbox row whose work was not done when the worker last looked.
    pub oldest: Option<Duration>,
    /// Number of outbox rows and messages that were finished and deleted.
    pub applied: u64,
    /// Number of remote copies and lists that were written or deleted.
    pub written: u64,
    /// Number of times that work was begun again: another writer was first, or a handler failed.
    pub retried: u64,
    /// Number of outbox rows and messages that were put aside: into the poison table, or a queue's message
    /// among the poison messages of its queue. Those in [`refused`](Self::refused) count here too.
    pub poisoned: u64,
    /// Number of messages and moves that were put aside because they are not authentic: somebody
    /// without the keys wrote them, or changed them. Each is worth an alarm.
    pub refused: u64,
    /// Number of failures that were not counted towards the poison table, such as failed requests.
    pub failures: u64,
    /// Number of messages that were received from queues. A message counts each time that it is
    /// received.
    pub received: u64,
    /// Number of entities that were deleted because their time had passed (`expires = field`).
    pub expired: u64,
    /// Number of fences that were deleted from idle partitions.
    pub closed: u64,
    /// The last of the failures that [`failures`](Self::failures) counts; `None` before the first.
    pub last_error: Option<WorkerFailure>,
}

/// A failure of a worker that was not counted towards the poison table, such as a failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerFailure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The text of the error.
    pub message: String,
    /// Number of failures since the last round of [`Worker::run`](crate::Worker::run) without one.
    /// A growing number of recent failures means an obstacle that does not pass by itself.
    pub count: u64,
    /// The time since the failure.
    pub age: Duration,
}

/// The last failure with the time at which it occurred.
#[derive(Debug)]
pub(super) struct LastFailure {
    pub(super) error: Error,
    pub(super) count: u64,
    pub(super) at: Instant,
}

impl LastFailure {
    pub(super) fn to_worker_failure(&self) -> WorkerFailure {
        WorkerFailure {
            kind: self.error.kind(),
            message: self.error.to_string(),
            count: self.count,
            age: self.at.elapsed(),
        }
    }
}

impl WorkerStats {
    /// Adds the counts of one partition's last visit.
    pub(super) fn with_visit(mut self, visit: &PartitionVisit) -> Self {
        self.open += visit.open;
        self.waiting += visit.waiting;
        self.unknown += visit.unknown;
        self.oldest = self.oldest.max(visit.oldest.filter(|_| visit.open > 0));
        self
    }
}
