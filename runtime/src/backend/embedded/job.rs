//! What the thread that writes is asked to do, and how it answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{
    batch::{Operation, Written},
    error::{Error, Result},
};

/// What became of a batch; an error has the position of its operation, where it is of one.
pub(super) type Answer = Result<Vec<Written>, (Option<usize>, Error)>;

/// What the writer is asked to do.
pub(super) enum Job {
    Write(Write),
    Create(String, oneshot::Sender<Result<()>>),
    Delete(String, oneshot::Sender<Result<()>>),
    Flush(oneshot::Sender<Result<()>>),
    Compact(oneshot::Sender<Result<()>>),
    Verify(oneshot::Sender<Result<()>>),
}

/// A batch that waits.
pub(super) struct Write {
    pub(super) table: String,
    pub(super) operations: Arc<Vec<Operation>>,
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Write {
    /// Bytes of its rows.
    pub(super) fn bytes(&self) -> usize {
        self.operations.iter().map(|operation| operation.row().as_bytes().len()).sum()
    }
}
