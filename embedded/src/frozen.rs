//! A store that shows the rows of one moment, from a snapshot, while writers go on.

use std::{fmt, path::Path, sync::Arc};

use entable_core::{
    backend::{
        self, Backend, BackupReport, BoxFuture, Capabilities, FrozenRows, ReadRequest, Rows,
        ScanRequest, TableNames, TableRequest, rules,
    },
    batch::{Batch, Written},
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    row::Row,
};

use crate::{backup, scan, snapshot::Snapshot};

/// A backend that reads a snapshot and refuses writes.
#[derive(Clone)]
pub(crate) struct FrozenStore {
    snapshot: Arc<Snapshot>,
    taken: Ticks,
}

impl FrozenStore {
    pub(crate) fn new(snapshot: Arc<Snapshot>, taken: Ticks) -> Self {
        Self { snapshot, taken }
    }

    /// Wraps the frozen store in the [`Snapshot`](backend::Snapshot) type that all backends return.
    pub(crate) fn into_backend_snapshot(self) -> backend::Snapshot {
        let file = self.snapshot.file().path().to_owned();
        backend::Snapshot::new(Arc::new(self), file)
    }

    fn refuse_write<T>(&self) -> Result<T> {
        let what = "a snapshot is read-only; write to the store";
        Err(self.snapshot.file().error_of_kind(ErrorKind::Unsupported, what))
    }
}

impl fmt::Debug for FrozenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.snapshot.file().path();
        f.debug_struct("FrozenStore").field("path", &path).finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for FrozenStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("embedded", true).exclusive()
    }

    fn server_address(&self) -> Option<&str> {
        None
    }

    fn server_port(&self) -> Option<u16> {
        None
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            rules::check_read_keys(request.table, request.partition_key, request.row_key)?;
            self.snapshot.read_row(request)
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            let page = scan::read_page(self.snapshot.clone(), request).await?;
            // Rows are as old as they were when the snapshot was taken.
            Ok(Rows { date: Some(self.taken), ..page })
        })
    }

    fn apply<'a>(&'a self, _batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async { self.refuse_write() })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::List { from, within } => {
                    Ok(self.snapshot.catalog().list_tables(from, within))
                }
                TableRequest::Create(_) | TableRequest::Delete(_) => self.refuse_write(),
            }
        })
    }

    fn settings<'a>(&'a self, table: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async move { self.snapshot.settings(table) })
    }

    fn set_settings<'a>(
        &'a self,
        _table: Option<&'a str>,
        _text: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { self.refuse_write() })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        // A snapshot has nothing to finish, and the store that it belongs to stays open.
        Box::pin(async { Ok::<(), Error>(()) })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<backend::Snapshot>> {
        Box::pin(async { Ok(self.clone().into_backend_snapshot()) })
    }
}

impl FrozenRows for FrozenStore {
    fn write_to<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<BackupReport>> {
        Box::pin(backup::write_in_thread(self.snapshot.clone(), path.to_owned()))
    }
}
