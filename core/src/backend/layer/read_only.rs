//! A layer that refuses writes.

use std::sync::Arc;

use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::forward::forward_to_inner,
    },
    batch::{Batch, Written},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// A layer that reads rows and refuses to change them.
///
/// A write, and the creation or deletion of a table, fails with `is_denied` and never reaches the backend.
///
/// ```
/// use entable_core::{Error, backend::{Backend, Memory, TableRequest, layer::ReadOnly}};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = ReadOnly::around(Memory::new());
/// assert!(store.tables(TableRequest::Create("Staff")).await.unwrap_err().is_denied());
/// let listed = store.tables(TableRequest::List { from: None, within: None }).await?;
/// assert!(listed.names.is_empty());
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReadOnly {
    inner: Arc<dyn Backend>,
}

impl ReadOnly {
    /// Makes a layer in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        Self { inner: Arc::new(backend) }
    }
}

fn refused<T>(table: &str) -> Result<T> {
    let message =
        "the store was opened to be read; open it without the layer `ReadOnly` to change it";
    Err(Error::new(ErrorKind::Denied, message).in_table(table))
}

#[deny(clippy::missing_trait_methods)]
impl Backend for ReadOnly {
    forward_to_inner!(origin);
    forward_to_inner!(whole);

    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        self.inner.settings(table)
    }

    fn set_settings<'a>(
        &'a self,
        table: Option<&'a str>,
        _text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { refused(table.unwrap_or_default()) })
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async { refused(batch.table()) })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        match request {
            TableRequest::Create(name) | TableRequest::Delete(name) => {
                Box::pin(async { refused(name) })
            }
            list @ TableRequest::List { .. } => self.inner.tables(list),
        }
    }
}
