//! Defines the work that continues after a write has returned.

use std::{fmt, future::Future};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};

use crate::error::Result;

/// Work in other partitions that continues after a write has returned. `None` if the write left no work, which
/// is the common case. The result of the work is kept for `wait`.
#[derive(Clone, Default)]
pub(crate) struct BackgroundWork(Option<Shared<BoxFuture<'static, Result<()>>>>);

impl BackgroundWork {
    /// Creates a handle to work that is still running.
    pub(crate) fn from_work(work: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(Some(work.boxed().shared()))
    }

    /// Creates a handle to work that has finished with `result`.
    pub(crate) fn from_result(result: Result<()>) -> Self {
        match result {
            Ok(()) => Self::default(),
            // Every call of `wait` returns the error of work that failed at once.
            Err(error) => Self::from_work(std::future::ready(Err(error))),
        }
    }

    /// Waits for the work to finish and returns its result.
    pub(crate) async fn wait(&self) -> Result<()> {
        match &self.0 {
            Some(work) => work.clone().await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for BackgroundWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "BackgroundWork" } else { "Done" })
    }
}
