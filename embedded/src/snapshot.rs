//! The snapshot that readers share, which each commit replaces.
//!
//! To begin a read transaction and to open a table cost as much as to find a row. All reads between
//! two commits therefore share one transaction and its open tables. A read releases its snapshot when
//! it ends: the file keeps the space of replaced rows as long as a snapshot contains them.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

use entable_core::{
    backend::ReadRequest,
    error::{Error, ErrorKind, Result},
    key::encode_sort_key,
    row::Row,
};
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase};
use tokio::sync::watch;

use crate::{
    catalog::Catalog,
    dictionary::Dictionary,
    file_format::{self, RowsDefinition, rows_table_name},
    job::FailedReadAlarm,
    store_file::{StoreFile, catch_panic},
    stored_row::{RowCopier, RowDamage, StoredRow, TableSeed},
};

/// The rows of one entity table, open for readers.
pub(crate) struct RowsForRead {
    pub(crate) table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    seed: TableSeed,
    layouts: Arc<Dictionary>,
}

impl RowsForRead {
    /// Reads the value at an address.
    #[inline]
    pub(crate) fn open_value<'v>(
        &'v self,
        address: &'v [u8],
        value: &'v [u8],
    ) -> Result<StoredRow<'v>, RowDamage> {
        StoredRow::open(self.seed, &self.layouts, address, value)
    }
}

/// The state of the store after one commit.
pub(crate) struct Snapshot {
    file: StoreFile,
    transaction: ReadTransaction,
    catalog: Arc<Catalog>,
    layouts: Arc<Dictionary>,
    /// The tables by their slot in the catalog, each opened by its first read.
    tables: Box<[OnceLock<RowsForRead>]>,
    alarm: FailedReadAlarm,
}

impl Snapshot {
    pub(crate) fn new(
        file: &StoreFile,
        database: &Database,
        catalog: &Arc<Catalog>,
        layouts: &Arc<Dictionary>,
        alarm: &FailedReadAlarm,
    ) -> Result<Self> {
        let transaction = database.begin_read().map_err(|error| file.engine_error(error))?;
        Ok(Self {
            file: file.clone(),
            transaction,
            catalog: catalog.clone(),
            layouts: layouts.clone(),
            tables: (0..catalog.len()).map(|_| OnceLock::new()).collect(),
            alarm: alarm.clone(),
        })
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn file(&self) -> &StoreFile {
        &self.file
    }

    /// Builds the error for a failure that the engine reports to a reader of this snapshot. After a failure of the
    /// disk, has the writer thread open the file again.
    // The engine refuses every later access of its own accord, also once the disk works again.
    pub(crate) fn engine_error(&self, error: impl Into<redb::Error>) -> Error {
        let error = error.into();
        if matches!(error, redb::Error::Io(_) | redb::Error::PreviousIo) {
            self.alarm.request_reopen();
        }
        self.file.engine_error(error)
    }

    /// Returns the rows of a table, or the error `TableNotFound`.
    pub(crate) fn rows_of_table(&self, table: &str) -> Result<&RowsForRead> {
        let (slot, entry) = self.catalog.get(table)?;
        // The slots come from the snapshot's own catalog, so this error never occurs.
        let opened = self
            .tables
            .get(slot)
            .ok_or_else(|| self.file.corrupt_error("the catalog has no such slot"))?;
        if let Some(rows) = opened.get() {
            return Ok(rows);
        }
        // Two readers may open the table at once. The first one's stays.
        let table = self.transaction.open_table(RowsDefinition::new(&rows_table_name(entry.id)));
        let table = table.map_err(|error| self.engine_error(error))?;
        let seed = TableSeed::of_table(entry.id);
        let rows = RowsForRead { table, seed, layouts: self.layouts.clone() };
        Ok(opened.get_or_init(|| rows))
    }

    /// Reads the bound of Timestamps in its stored bytes. `None` before the first write.
    pub(crate) fn timestamp_bound_bytes(&self) -> Result<Option<Vec<u8>>> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let facts = self.transaction.open_table(file_format::META)?;
            Ok(facts.get(file_format::meta::TICK)?.map(|bytes| bytes.value().to_vec()))
        };
        catch_panic(read).map_err(|error| self.engine_error(error))
    }

    /// Reads the settings of a table, or of the store. Returns `None` if nothing is set.
    pub(crate) fn settings(&self, table: Option<&str>) -> Result<Option<String>> {
        let id = table.map(|name| self.catalog.get(name).map(|(_, entry)| entry.id)).transpose()?;
        let name = file_format::meta::settings_name(id);
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let facts = self.transaction.open_table(file_format::META)?;
            Ok(facts.get(&*name)?.map(|bytes| bytes.value().to_vec()))
        };
        let bytes = catch_panic(read).map_err(|error| self.engine_error(error))?;
        let text = bytes.map(String::from_utf8).transpose();
        text.map_err(|_| self.file.corrupt_error("settings are not text"))
    }

    /// Reads one row with the selected properties. Returns `None` if it does not exist.
    pub(crate) fn read_row(&self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        self.file.catch_panic(|| {
            let key = encode_sort_key(request.partition_key, request.row_key);
            let rows = self.rows_of_table(request.table)?;
            let found = rows.table.get(&*key);
            let Some(value) = found.map_err(|error| self.engine_error(error))? else {
                return Ok(None);
            };
            let row =
                copy_stored_row(rows.seed, &rows.layouts, &key, value.value(), request.select);
            row.map(Some).map_err(|damage| self.file.damaged_row_error(&key, damage))
        })
    }
}

/// Checks the value at an address of a table, and copies the selected properties of its row.
pub(crate) fn copy_stored_row(
    table: TableSeed,
    layouts: &Dictionary,
    address: &[u8],
    value: &[u8],
    select: Option<&[String]>,
) -> Result<Row, RowDamage> {
    let row = StoredRow::open(table, layouts, address, value)?;
    RowCopier::of_row(select).copy(&row)
}

/// The state that the writer thread publishes for readers: with a snapshot, paused or stopped.
#[derive(Clone)]
pub(crate) enum ReaderState {
    /// Readers use this snapshot, the newest one.
    Open(Arc<Snapshot>),
    /// Readers wait: the file is being compacted, verified or reopened.
    Paused,
    /// Reads fail: the file could not be reopened. The text says why.
    Stopped(Arc<str>),
}

/// How long work on the whole file waits for readers.
const READERS_MAY_TAKE: Duration = Duration::from_secs(5);

/// Replaces the state for readers. Then waits up to 5 s until no reader holds the snapshot of the
/// replaced state. Returns a weak reference to that snapshot: its strong count is above 0 only if a
/// reader still holds the snapshot.
pub(crate) fn replace_and_wait(
    reader_state: &watch::Sender<ReaderState>,
    state: ReaderState,
) -> Weak<Snapshot> {
    let snapshot = match reader_state.send_replace(state) {
        ReaderState::Open(snapshot) => Arc::downgrade(&snapshot),
        ReaderState::Paused | ReaderState::Stopped(_) => Weak::new(),
    };
    let started = Instant::now();
    // The writer has a thread of its own: sleeping here holds up no task of a runtime.
    while snapshot.strong_count() > 0 && started.elapsed() < READERS_MAY_TAKE {
        std::thread::sleep(Duration::from_millis(1));
    }
    snapshot
}

/// Returns the newest snapshot. Waits while reads are paused.
pub(crate) async fn newest_snapshot(
    file: &StoreFile,
    reader_state: &watch::Receiver<ReaderState>,
) -> Result<Arc<Snapshot>> {
    if let ReaderState::Open(snapshot) = &*reader_state.borrow() {
        return Ok(snapshot.clone());
    }
    let mut reader_state = reader_state.clone();
    let settled = reader_state.wait_for(|state| !matches!(state, ReaderState::Paused)).await;
    match settled.as_deref() {
        Ok(ReaderState::Open(snapshot)) => Ok(snapshot.clone()),
        Ok(state) => Err(stopped_error(file, state)),
        // The writer has ended.
        Err(_) => Err(stopped_error(file, &ReaderState::Paused)),
    }
}

/// Why a store answers no more, if a failure is the cause.
pub(crate) const STOPPED_BY_FAILURE: &str = "a failure stopped the store; reopen it";

/// Returns the error for a store whose writer thread has ended. The last state that the thread published
/// says why, unless a failure ended the thread.
pub(crate) fn stopped_error(file: &StoreFile, last: &ReaderState) -> Error {
    let why = match last {
        ReaderState::Stopped(why) => why,
        ReaderState::Open(_) | ReaderState::Paused => STOPPED_BY_FAILURE,
    };
    file.error_of_kind(ErrorKind::Backend, why)
}
