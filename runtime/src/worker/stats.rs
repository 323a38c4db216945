//! The counts of a worker in total, and for the last visit of each partition.

use std::time::Duration;

use tokio::time::Instant;

use super::visit::LastPartitionVisit;
use crate::error::{Error, ErrorKind};

/// The work that a worker has done since it was created, and the open work at its last visits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Outbox rows with open work at the last visit, without the rows in [`waiting`](Self::waiting).
    pub open: u64,
    /// Outbox rows whose work is done, but which are kept until no delayed writer can undo it (the second look).
    pub waiting: u64,
    /// Outbox rows and messages of types that this program does not know, and damaged outbox rows, directory
    /// markers and fences. None of them holds up other work.
    pub unknown: u64,
    /// The age of the oldest outbox row with open work at the worker's last visit.
    pub oldest: Option<Duration>,
    /// Outbox rows and messages that were finished and deleted.
    pub applied: u64,
    /// Remote copies and lists that were written or deleted.
    pub written: u64,
    /// How often work was started again, because another writer was first or a handler failed.
    pub retried: u64,
    /// Outbox rows and messages that were put aside: into the poison table, or for messages of a queue, among the
    /// queue's poison messages. Includes the messages in [`refused`](Self::refused).
    pub poisoned: u64,
    /// Messages and moves that were put aside because they are not authentic: somebody without the keys wrote or
    /// changed them. Raise an alarm for each.
    pub refused: u64,
    /// Failures that do not count towards the poison table, such as failed requests.
    pub failures: u64,
    /// Messages that were received from queues, counted at each delivery.
    pub received: u64,
    /// Entities that were deleted because they had expired (`expires = field`).
    pub expired: u64,
    /// Fences that were deleted from idle partitions.
    pub closed: u64,
    /// The last failure that [`failures`](Self::failures) counts, or `None` if there was none.
    pub last_error: Option<WorkerFailure>,
}

/// A failure of a worker that does not count towards the poison table, such as a failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerFailure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The text of the error.
    pub message: String,
    /// The number of failures since the last round of [`Worker::run`](crate::Worker::run) without a failure. If it
    /// keeps growing, the cause will not go away without action.
    pub count: u64,
    /// The time since the failure.
    pub age: Duration,
}

/// The last failure and when it occurred.
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
    /// Adds the counts of a partition's last visit.
    pub(super) fn with_visit(mut self, visit: &LastPartitionVisit) -> Self {
        self.open += visit.open;
        self.waiting += visit.waiting;
        self.unknown += visit.unknown;
        self.oldest = self.oldest.max(visit.oldest.filter(|_| visit.open > 0));
        self
    }
}
