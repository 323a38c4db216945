//! The trait that the rest of the crate reads and writes rows through.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{
    request::{Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest},
    snapshot::Snapshot,
};
use crate::{
    batch::{Batch, Written},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// The future that the functions of a backend return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store of rows that behaves by the rules of the Azure Table service.
///
/// Implementations and callers keep this contract:
///
/// * An error has the service's code ([`Error::service`](crate::Error::service)) where the service has
///   one; other failures of disk or network are [`ErrorKind::Backend`].
/// * `apply` is atomic and isolated, and is as durable as the backend promises once it returns. What a batch must be,
///   whatever the rows are, is checked when the batch is built, so an error of `apply` was found while the batch was
///   executed, except for a missing table, which the service looks for before.
///   [`failed_index`](crate::Error::failed_index) identifies the operation that failed. If the outcome of a write is
///   unknown, the error is `is_ambiguous`; it must not claim that the write did not happen. The error of a request that
///   was never sent has [`NotSent`](super::NotSent) as its source.
/// * Two successive writes of one row never give the same ETag.
/// * `scan` returns rows in ordinal order of (PartitionKey, RowKey) if [`Capabilities::ordered`] says so.
///   An empty page can have a continuation. A continuation names the next row, and stays valid if that
///   row is deleted.
/// * A row that does not decode is an error at its place in the page; the other rows are returned. A row with a
///   duplicate property, or outside the requested keys, counts as not decodable: readers would disagree about its value
///   or its place.
/// * The date of a page and the Timestamps of its rows come from one clock. Without a date, work that must wait until a
///   row is old is never done.
/// * A batch whose [deadline](crate::Batch::check_deadline) has passed is refused with the deadline's error, and
///   nothing is sent. The backend checks it last, right before it sends the request or changes rows.
/// * If the future of a write is dropped, the write may or may not happen.
///
/// [`ErrorKind::Backend`]: crate::ErrorKind::Backend
pub trait Backend: Send + Sync + fmt::Debug + 'static {
    /// Returns what this backend can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns the host of the store, which spans and metrics show as `server.address`. `None` by default, which suits
    /// stores in this process. A layer asks its inner backend.
    fn server_address(&self) -> Option<&str> {
        None
    }

    /// Returns the port of the store, which spans and metrics show as `server.port`. `None` by default, which suits
    /// stores in this process. Also `None` if the address has no port and the protocol's default applies (443 for
    /// https). A layer asks its inner backend.
    fn server_port(&self) -> Option<u16> {
        None
    }

    /// Reads one row by its keys. Returns `None` if the row does not exist. Fails with `TableNotFound` if the table
    /// does not exist.
    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>>;

    /// Reads one page of the rows that match a filter.
    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>>;

    /// Carries out one operation, or several as an entity group transaction. The answer has one item for each
    /// operation.
    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>>;

    /// Creates, deletes or lists tables.
    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>>;

    /// Reads the settings of a table, or of the store without a table: a text that a server of the service's protocol
    /// keeps, such as stored access policies. Returns `None` if nothing is set. Fails with `TableNotFound` if the table
    /// does not exist, and with `is_unsupported` by default.
    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        let _ = table;
        Box::pin(async { Err(no_settings_error()) })
    }

    /// Replaces the settings of a table, or of the store without a table. An empty text removes them. They are as
    /// durable as a new table, and are deleted together with their table. Fails like [`settings`](Self::settings).
    fn set_settings<'a>(
        &'a self,
        table: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        let _ = (table, text);
        Box::pin(async { Err(no_settings_error()) })
    }

    /// Closes the store: finishes pending writes and releases exclusive resources, such as a file. Later requests fail.
    /// Does nothing by default, which suits stores without such resources. A layer closes its inner backend.
    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns a snapshot of the rows at this moment. They stay readable while writers continue. Fails with
    /// `is_unsupported` by default, which suits stores without snapshots. A layer asks the backend that it is around.
    /// Reads from the snapshot do not pass through the layer.
    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async { Err(no_snapshots_error()) })
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn server_address(&self) -> Option<&str> {
        (**self).server_address()
    }

    fn server_port(&self) -> Option<u16> {
        (**self).server_port()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        (**self).read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        (**self).scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        (**self).apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        (**self).tables(request)
    }

    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        (**self).settings(table)
    }

    fn set_settings<'a>(
        &'a self,
        table: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        (**self).set_settings(table, text)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        (**self).close()
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Snapshot>> {
        (**self).snapshot()
    }
}

/// Returns the error for settings of a store that keeps none.
///
/// ```
/// use entable_core::backend::no_settings_error;
///
/// assert!(no_settings_error().is_unsupported());
/// ```
pub fn no_settings_error() -> Error {
    let message = "this store keeps no settings; serve a store in a file or in memory";
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the error for a snapshot of a store that has none.
///
/// ```
/// use entable_core::backend::no_snapshots_error;
///
/// assert!(no_snapshots_error().is_unsupported());
/// ```
pub fn no_snapshots_error() -> Error {
    let message = "only a store in a file has snapshots and backups; read it page by page, or copy its rows into a store in a file";
    Error::new(ErrorKind::Unsupported, message)
}
