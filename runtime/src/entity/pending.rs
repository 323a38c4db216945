//! What a write still does after it was answered.

use std::{fmt, future::Future};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};

use crate::error::Result;

/// The work in other partitions that a write left to the background; nothing for most writes.
#[derive(Clone, Default)]
pub(crate) struct Pending(Option<Shared<BoxFuture<'static, Result<()>>>>);

impl Pending {
    /// Work under way.
    pub(crate) fn of(work: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(Some(work.boxed().shared()))
    }

    /// Work that is over.
    pub(crate) fn over(result: Result<()>) -> Self {
        Self::of(std::future::ready(result))
    }

    /// Returns when it is over.
    pub(crate) async fn wait(&self) -> Result<()> {
        match &self.0 {
            Some(work) => work.clone().await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Pending" } else { "Done" })
    }
}
