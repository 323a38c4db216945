//! The jobs of the writer thread, and the channels for their answers.

use std::{
    fs::File,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::Sender,
    },
};

use entable_core::{
    batch::{Batch, Deadline, Operation, Written},
    error::{Error, Result},
};
use tokio::sync::oneshot;

use crate::{file_copy::FileCopy, watched_file::WatchedFile};

/// The result of a batch. An error comes with the position of the operation that failed, if it belongs
/// to one.
pub(crate) type BatchAnswer = Result<Vec<Written>, (Option<usize>, Error)>;

/// A job for the writer thread.
pub(crate) enum WriterJob {
    Write(QueuedBatch),
    Create(String, oneshot::Sender<Result<()>>),
    Delete(String, oneshot::Sender<Result<()>>),
    /// Replaces the settings of a table, or of the store, by a text.
    Configure(Option<String>, String, oneshot::Sender<Result<()>>),
    Flush(oneshot::Sender<Result<()>>),
    Compact(oneshot::Sender<Result<()>>),
    Verify(oneshot::Sender<Result<()>>),
    /// Begins a copy of the file into an empty one.
    BeginCopy(File, oneshot::Sender<Result<BegunCopy>>),
    /// Opens the file again if a read has found that the disk failed. Nobody waits for an answer.
    ReopenAfterFailedRead,
    /// Has the thread look again when maintenance is due, after a write on its caller's thread. Nobody waits for an
    /// answer.
    TimeMaintenance,
    /// Ends the writer thread, once the file is closed.
    Close(oneshot::Sender<Result<()>>),
}

impl WriterJob {
    /// Returns whether somebody waits for the answer.
    pub(crate) const fn has_caller(&self) -> bool {
        !matches!(self, Self::ReopenAfterFailedRead | Self::TimeMaintenance)
    }
}

/// Tells the writer thread that a read found the disk failed, and in which opening of the file.
#[derive(Clone)]
pub(crate) struct FailedReadAlarm {
    /// Weak, because the writer thread ends with the last sender, and a snapshot may outlive the store.
    jobs: Weak<Sender<WriterJob>>,
    has_failed: Arc<AtomicBool>,
}

impl FailedReadAlarm {
    pub(crate) fn new(jobs: Weak<Sender<WriterJob>>) -> Self {
        Self { jobs, has_failed: Arc::default() }
    }

    /// Returns an alarm without a request, for the next opening of the file.
    pub(crate) fn for_next_opening(&self) -> Self {
        Self::new(self.jobs.clone())
    }

    /// Sends the job that opens the file again, once for all reads that fail.
    pub(crate) fn request_reopen(&self) {
        if !self.has_failed.swap(true, SeqCst)
            && let Some(jobs) = self.jobs.upgrade()
        {
            // A writer thread that has ended opens nothing.
            drop(jobs.send(WriterJob::ReopenAfterFailedRead));
        }
    }

    pub(crate) fn is_reopen_requested(&self) -> bool {
        self.has_failed.load(SeqCst)
    }
}

/// A copy of a file that was begun by the writer thread, between two commits.
pub(crate) struct BegunCopy {
    pub(crate) copy: Arc<FileCopy>,
    pub(crate) source: WatchedFile,
    /// The number of the newest commit in the file at that moment.
    pub(crate) newest_commit: u64,
}

/// A batch that waits for the writer thread.
pub(crate) struct QueuedBatch {
    pub(crate) table: String,
    pub(crate) operations: Arc<Vec<Operation>>,
    /// The latest time the batch may be applied. If its turn comes later, it fails with the deadline's error. `None`
    /// means no limit.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) answer: oneshot::Sender<BatchAnswer>,
}

impl QueuedBatch {
    /// Makes a batch ready for the writer thread. Also returns the channel of its answer.
    pub(crate) fn new(batch: &Batch) -> (Self, oneshot::Receiver<BatchAnswer>) {
        let (answer, receiver) = oneshot::channel();
        let (table, operations) = (batch.table().to_owned(), batch.operations_arc());
        let deadline = batch.deadline().cloned();
        (Self { table, operations, deadline, answer }, receiver)
    }

    /// Returns the number of bytes of the rows of the batch.
    pub(crate) fn row_byte_count(&self) -> usize {
        self.operations.iter().map(|operation| operation.row().byte_len()).sum()
    }
}
