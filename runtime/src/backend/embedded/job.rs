//! The jobs of the writer thread, and the channels for their answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{
    batch::{Deadline, Operation, Written},
    error::{Error, Result},
};

/// The result of a batch. An error comes with the position of the operation that failed, if it belongs
/// to one.
pub(super) type BatchAnswer = Result<Vec<Written>, (Option<usize>, Error)>;

/// A job for the writer thread.
pub(super) enum Job {
    Write(QueuedBatch),
    Create(String, oneshot::Sender<Result<()>>),
    Delete(String, oneshot::Sender<Result<()>>),
    Flush(oneshot::Sender<Result<()>>),
    Compact(oneshot::Sender<Result<()>>),
    Verify(oneshot::Sender<Result<()>>),
    /// Ends the writer thread, once the file is closed.
    Close(oneshot::Sender<Result<()>>),
}

/// A batch that waits for the writer thread.
pub(super) struct QueuedBatch {
    pub(super) table: String,
    pub(super) operations: Arc<Vec<Operation>>,
    /// The last moment at which the batch may be applied. If the batch's turn comes later, it fails
    /// with the deadline's error. `None` means no limit.
    pub(super) deadline: Option<Deadline>,
    pub(super) answer: oneshot::Sender<BatchAnswer>,
}

impl QueuedBatch {
    /// Returns the number of bytes of the rows of the batch.
    pub(super) fn row_bytes(&self) -> usize {
        self.operations.iter().map(|operation| operation.row().as_bytes().len()).sum()
    }
}
