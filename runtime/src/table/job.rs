//! The shared parts of long-running jobs (bulk writes, checks, rebuilds, re-encryptions, copies): progress
//! callbacks, and the future that runs a job.
//!
//! A job is a struct of its options and runs when it is awaited. Its method `run` goes over pages in a
//! [`PageLoop`](crate::page::PageLoop), processes each page, reports progress to a [`Listener`] with the
//! cursor of the next page, and returns a report.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::error::Result;

/// A boxed future that runs a job to its report.
pub(crate) type JobFuture<R> = Pin<Box<dyn Future<Output = Result<R>> + Send>>;

/// Implements `IntoFuture` for a job by calling its method `run`. Takes generics in brackets, the job, its report.
macro_rules! run_when_awaited {
    ([$($generics:tt)*] $job:ty => $report:ty) => {
        impl<$($generics)*> ::std::future::IntoFuture for $job {
            type Output = $crate::error::Result<$report>;
            type IntoFuture = $crate::table::job::JobFuture<$report>;

            fn into_future(self) -> Self::IntoFuture {
                ::std::boxed::Box::pin(self.run())
            }
        }
    };
}
pub(crate) use run_when_awaited;

/// A callback that receives a job's progress.
type Callback<P> = dyn Fn(&P) + Send + Sync;

/// An optional user callback that receives every `P` of a job. Clones share one callback.
pub(crate) struct Listener<P>(Option<Arc<Callback<P>>>);

impl<P> Listener<P> {
    /// Creates a listener without a callback.
    pub(crate) const fn silent() -> Self {
        Self(None)
    }

    /// Creates a listener that calls `callback`.
    pub(crate) fn new(callback: impl Fn(&P) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    /// Calls the user's callback, if one is set, with the progress that `report` returns.
    pub(crate) fn notify_callback(&self, report: impl FnOnce() -> P) {
        if let Some(callback) = &self.0 {
            callback(&report());
        }
    }

    /// Returns whether a callback of the user is set.
    pub(crate) const fn has_callback(&self) -> bool {
        self.0.is_some()
    }
}

impl<P> Clone for Listener<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P> fmt::Debug for Listener<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.has_callback()).finish()
    }
}
