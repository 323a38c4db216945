//! Backups: the rows of a snapshot, written in the order of their keys into a new file.

use std::{
    collections::BTreeSet,
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread::Scope,
};

use entable_core::{
    __runtime::limits::saturating_u64,
    backend::BackupReport,
    error::{Error, ErrorKind, Result},
};
use redb::{CursorError, Database, ReadableTable, WriteTransaction};
use tokio::sync::oneshot;

use crate::{
    catalog,
    file_format::{LAYOUTS, META, RowsDefinition, meta, rows_table_name},
    open_file,
    snapshot::{RowsForRead, Snapshot},
    store_file::StoreFile,
    stored_row::{TableSeed, put_value_for_table},
};

/// Maximum bytes of rows per transaction of the new file. Each commit waits for the disk.
const TRANSACTION_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of rows that are handed from reader to writer at once.
const CHUNK_BYTES: usize = 512 * 1024;
/// Chunks that wait for the writer at most.
const CHUNKS_AHEAD: usize = 4;
/// Bytes of memory for pages of the new file.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Writes the backup in a thread of its own, and waits for it. If the waiting future is dropped, the
/// thread gives the backup up before the next chunk of rows.
pub(crate) async fn write_in_thread(
    snapshot: Arc<Snapshot>,
    path: PathBuf,
) -> Result<BackupReport> {
    let (sender, answer) = oneshot::channel();
    let writing = std::thread::Builder::new().name("entable-backup".to_owned()).spawn(move || {
        let is_wanted = || !sender.is_closed();
        let written = write_snapshot(&snapshot, &path, &is_wanted);
        // Release the snapshot before answering, since a compaction may follow at once.
        drop(snapshot);
        // Nobody may wait for the answer any more.
        let _ = sender.send(written);
    });
    let ended = |what: &str| Error::new(ErrorKind::Backend, format!("the backup {what}"));
    writing.map_err(|error| ended("could not start its thread").with_source(error))?;
    answer.await.map_err(|_| ended("ended without an answer"))?
}

fn write_snapshot(
    snapshot: &Snapshot,
    path: &Path,
    is_wanted: &dyn Fn() -> bool,
) -> Result<BackupReport> {
    let target = StoreFile::new(path);
    let taken = || {
        target.error_of_kind(ErrorKind::Conflict, "the file already exists; choose another name")
    };
    // Only to fail before the work: a file that appears later is found when the backup gets its
    // name.
    if path.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let mut report = BackupReport::default();
    let is_named = open_file::create_filled_store(&target, CACHE_BYTES, |database| {
        target.catch_panic(|| {
            std::thread::scope(|scope| {
                write_tables(scope, snapshot, &target, database, &mut report, is_wanted)
            })
        })?;
        open_file::verify_pages(&target, database)
    })?;
    if !is_named {
        return Err(taken());
    }
    report.file_bytes = path.metadata().map_err(|error| target.io_error(error))?.len();
    Ok(report)
}

/// Writes all tables and rows of the snapshot. Another thread of `scope` reads the next rows meanwhile.
fn write_tables<'s>(
    scope: &'s Scope<'s, '_>,
    snapshot: &'s Snapshot,
    target: &StoreFile,
    database: &Database,
    report: &mut BackupReport,
    is_wanted: &dyn Fn() -> bool,
) -> Result<()> {
    let fault = |error: redb::Error| target.engine_error(error);
    let begin = || database.begin_write().map_err(|error| fault(error.into()));
    // Without this time, a row that was deleted and is inserted again in the backup could get an
    // ETag that it had before.
    let tick = snapshot.timestamp_bound_bytes()?;
    let mut transaction = begin()?;
    let set_tick = || -> Result<(), redb::Error> {
        if let Some(tick) = &tick {
            transaction.open_table(META)?.insert(meta::TICK, &tick[..])?;
        }
        Ok(())
    };
    set_tick().map_err(fault)?;
    let keep_settings = |transaction: &WriteTransaction, table: Option<(&str, u64)>| {
        let text = snapshot.settings(table.map(|(name, _)| name))?.unwrap_or_default();
        let id = table.map(|(_, id)| id);
        catalog::write_settings(transaction, id, &text).map_err(fault)
    };
    keep_settings(&transaction, None)?;
    let mut pending = 0;
    for entry in snapshot.catalog().entries() {
        let written = catalog::add_table(&transaction, &entry.name, entry.created);
        let id = written.map_err(fault)?.id;
        keep_settings(&transaction, Some((&entry.name, id)))?;
        let name = rows_table_name(id);
        report.tables += 1;
        let rows = snapshot.rows_of_table(&entry.name)?;
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let reader = std::thread::Builder::new().name("entable-backup-reader".to_owned());
        let read = move || read_chunks(snapshot, rows, TableSeed::of_table(id), &sender);
        reader.spawn_scoped(scope, read).map_err(|error| target.io_error(error))?;
        for chunk in chunks {
            let chunk = chunk?;
            append_rows(&transaction, &name, &chunk).map_err(fault)?;
            // A length always fits into 64 bits.
            let bytes = saturating_u64(chunk.bytes.len());
            report.rows += saturating_u64(chunk.lengths.len());
            report.row_bytes += bytes;
            pending += bytes;
            if !is_wanted() {
                return Err(Error::new(ErrorKind::Backend, "the backup was cancelled"));
            }
            if pending >= TRANSACTION_BYTES {
                transaction.commit().map_err(|error| fault(error.into()))?;
                transaction = begin()?;
                pending = 0;
            }
        }
    }
    // The last commit stores the map of free pages, so opening the file need not rebuild it.
    transaction.set_quick_repair(true);
    transaction.commit().map_err(|error| fault(error.into()))
}

/// Rows on their way from the snapshot to the new file.
#[derive(Default)]
struct Chunk {
    /// The address and the value of each row, one after the other.
    bytes: Vec<u8>,
    /// The bytes of each address and value.
    lengths: Vec<(usize, usize)>,
    /// The layouts that no row of the chunks before has, by id.
    layouts: Vec<(u32, Box<[u8]>)>,
}

/// Reads the rows of a table, checks that each decodes, and sends them in chunks for the table `target`. Ends at the
/// end of the table, at the first error, or when the receiver of the chunks is gone.
fn read_chunks(
    snapshot: &Snapshot,
    rows: &RowsForRead,
    target: TableSeed,
    chunks: &SyncSender<Result<Chunk>>,
) {
    let file = snapshot.file();
    let read = file.catch_panic(|| {
        let (mut chunk, mut layouts) = (Chunk::default(), BTreeSet::new());
        for item in
            ReadableTable::iter(&rows.table).map_err(|error| snapshot.engine_error(error))?
        {
            let (key, value) = item.map_err(|error| snapshot.engine_error(error))?;
            let (key, value) = (key.value(), value.value());
            let row = rows.open_value(key, value).and_then(|row| row.to_row().map(|_| row));
            let row = row.map_err(|damage| file.damaged_row_error(key, damage))?;
            if let Some(layout) = row.layout()
                && layouts.insert(layout.id)
            {
                chunk.layouts.push((layout.id, layout.bytes.clone()));
            }
            chunk.bytes.extend_from_slice(key);
            // Its checksum depends on the table, which has another id in the backup.
            put_value_for_table(target, row.layout(), key, value, &mut chunk.bytes);
            chunk.lengths.push((key.len(), value.len()));
            if chunk.bytes.len() >= CHUNK_BYTES
                && chunks.send(Ok(std::mem::take(&mut chunk))).is_err()
            {
                return Ok(());
            }
        }
        // The writer may have given up.
        let _ = chunks.send(Ok(chunk));
        Ok(())
    });
    if let Err(error) = read {
        // If the writer is gone, its own error is the answer.
        let _ = chunks.send(Err(error));
    }
}

/// Appends rows to a table of the new file, and stores their layouts. The rows' keys must be greater than all keys in the
/// table.
fn append_rows(
    transaction: &WriteTransaction,
    table: &str,
    chunk: &Chunk,
) -> Result<(), redb::Error> {
    if !chunk.layouts.is_empty() {
        let mut layouts = transaction.open_table(LAYOUTS)?;
        for (id, layout) in &chunk.layouts {
            layouts.insert(id, &**layout)?;
        }
    }
    let mut rows = transaction.open_table(RowsDefinition::new(table))?;
    let mut end = rows.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
    let mut rest = &*chunk.bytes;
    for (key, value) in &chunk.lengths {
        // Never occurs: the lengths were computed for this chunk.
        let cut = || redb::Error::Corrupted("a row was truncated while it was copied".to_owned());
        let (key, values) = rest.split_at_checked(*key).ok_or_else(cut)?;
        let (value, others) = values.split_at_checked(*value).ok_or_else(cut)?;
        end.insert_before(key, value).map_err(|error| match error {
            CursorError::Storage(error) => error.into(),
            error => redb::Error::Corrupted(error.to_string()),
        })?;
        rest = others;
    }
    Ok(end.close()?)
}
