//! The port behind which rows are kept, and what stands behind it.
//!
//! A backend moves rows and never sees entity types. Layers are backends around a backend.

#[cfg(feature = "azure")]
pub mod azure;
#[cfg(feature = "embedded")]
mod embedded;
pub mod layer;
mod memory;
mod request;
mod rules;
mod window;

use std::{error::Error as StdError, fmt, future::Future, pin::Pin, sync::Arc};

#[cfg(feature = "embedded")]
pub use embedded::{Durability, Embedded, EmbeddedOptions};
pub use memory::Memory;
pub use request::{Capabilities, Read, Rows, Scan, TableNames, TableRequest};

use crate::{
    batch::{Batch, Written},
    error::{BoxError, Error, Result},
    row::Row,
};

/// A future of a backend.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place that keeps rows by the service's rules.
///
/// The contract, for implementations and for callers:
///
/// * Errors carry the service's code ([`Error::service`](crate::Error::service)) wherever the
///   service has one; other failures of disk or network are [`ErrorKind::Backend`].
/// * `apply` is all or nothing, isolated, and durable by the backend's promise when it returns. A
///   failing operation is named by [`failed_index`](crate::Error::failed_index). A write whose
///   outcome is unknown is `is_ambiguous`, never an error that claims it did not happen. An error of
///   a request that never left has [`NotSent`] as its source.
/// * Two successive writes of one row never have the same ETag.
/// * `scan` gives rows in ordinal order of (PartitionKey, RowKey) where
///   [`Capabilities::ordered`] says so. A page may be empty and still have a continuation; a
///   continuation names the next row and stays good when that row is deleted.
/// * A page's date and the Timestamps of its rows are of one clock. Work that has to wait until a
///   row is old is never done by a backend whose pages have no date.
/// * A future that is dropped may or may not have written.
///
/// [`ErrorKind::Backend`]: crate::ErrorKind::Backend
pub trait Backend: Send + Sync + fmt::Debug + 'static {
    /// What this backend can do.
    fn capabilities(&self) -> Capabilities;

    /// One row by its keys. `None`: no such row; a missing table is `TableNotFound`.
    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>>;

    /// One page of the rows that match a filter.
    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>>;

    /// One operation, or an entity group transaction. The answer has one entry per operation.
    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>>;

    /// Creates, deletes or lists tables.
    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>>;
}

/// The cause of an error, where the request never left: it may be made again as it is, whatever it
/// does.
#[derive(Debug)]
pub struct NotSent(BoxError);

impl NotSent {
    /// The cause that says why.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }

    /// Whether the error is of a request that never left.
    pub fn is_cause_of(error: &Error) -> bool {
        error.source().is_some_and(|source| source.is::<Self>())
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request was not sent: {}", self.0)
    }
}

impl StdError for NotSent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        (**self).read(request)
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>> {
        (**self).scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        (**self).apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        (**self).tables(request)
    }
}
