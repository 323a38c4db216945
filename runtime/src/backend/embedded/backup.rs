//! Backups: the rows of a snapshot, written in the order of their keys into a new file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{Database, ReadableTable};
use tokio::sync::oneshot;

use super::{
    catalog,
    layout::{self, META, RowsDefinition, meta, rows_table_name},
    open_file,
    snapshot::Snapshot,
    store_file::StoreFile,
};
use crate::{
    backend::BackupReport,
    error::{Error, ErrorKind, Result},
};

/// Bytes of rows that one transaction of the new file holds.
const TRANSACTION_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of memory for pages of the new file.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Writes the backup in a thread of its own, and waits for it. The thread ends early if nobody waits any more.
pub(super) async fn write_in_thread(
    snapshot: Arc<Snapshot>,
    path: PathBuf,
) -> Result<BackupReport> {
    let (sender, answer) = oneshot::channel();
    let writing = std::thread::Builder::new().name("entable-backup".to_owned()).spawn(move || {
        let is_wanted = || !sender.is_closed();
        let written = write(&snapshot, &path, &is_wanted);
        // The snapshot is given back before the answer, so that a compaction may follow it.
        drop(snapshot);
        // Nobody may wait for the answer any more.
        let _ = sender.send(written);
    });
    let ended = |what: &str| Error::new(ErrorKind::Backend, format!("the backup {what}"));
    writing.map_err(|error| ended("cannot start its thread").with_source(error))?;
    answer.await.map_err(|_| ended("has ended without an answer"))?
}

fn write(snapshot: &Snapshot, path: &Path, is_wanted: &dyn Fn() -> bool) -> Result<BackupReport> {
    let target = StoreFile::new(path);
    let taken =
        || target.error_of_kind(ErrorKind::Conflict, "the file exists, choose another name");
    if path.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let mut report = BackupReport::default();
    let is_named = open_file::create_with(&target, CACHE_BYTES, |database| {
        target.catch_panic(|| fill(snapshot, &target, database, &mut report, is_wanted))?;
        open_file::verify_pages(&target, database)
    })?;
    if !is_named {
        return Err(taken());
    }
    report.file_bytes = path.metadata().map_err(|error| target.io_error(error))?.len();
    Ok(report)
}

/// Writes all tables and rows of the snapshot.
fn fill(
    snapshot: &Snapshot,
    target: &StoreFile,
    database: &Database,
    report: &mut BackupReport,
    is_wanted: &dyn Fn() -> bool,
) -> Result<()> {
    let fault = |error: redb::Error| target.engine_error(error);
    let begin = || database.begin_write().map_err(|error| fault(error.into()));
    let tick = snapshot.tick()?;
    let mut transaction = begin()?;
    let set_tick = || -> Result<(), redb::Error> {
        if let Some(tick) = &tick {
            transaction.open_table(META)?.insert(meta::TICK, &tick[..])?;
        }
        Ok(())
    };
    set_tick().map_err(fault)?;
    let mut pending = 0;
    for entry in snapshot.catalog().entries() {
        let written = catalog::write_table(&transaction, &entry.name, entry.created);
        let name = rows_table_name(written.map_err(fault)?.id);
        report.tables += 1;
        let rows = snapshot.rows(&entry.name)?;
        let mut range =
            ReadableTable::iter(rows).map_err(|error| snapshot.file().engine_error(error))?;
        let mut is_finished = false;
        while !is_finished {
            let mut table = transaction
                .open_table(RowsDefinition::new(&name))
                .map_err(|error| fault(error.into()))?;
            while pending < TRANSACTION_BYTES {
                let Some(item) = range.next() else {
                    is_finished = true;
                    break;
                };
                let (key, value) = item.map_err(|error| snapshot.file().engine_error(error))?;
                let (key, value) = (key.value(), value.value());
                if layout::read_row(key, value).is_none() {
                    return Err(snapshot.file().damaged_row_error(key));
                }
                table.insert(key, value).map_err(|error| fault(error.into()))?;
                let bytes = u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX);
                report.rows += 1;
                report.row_bytes += bytes;
                pending += bytes;
            }
            drop(table);
            if pending >= TRANSACTION_BYTES {
                transaction.commit().map_err(|error| fault(error.into()))?;
                transaction = begin()?;
                pending = 0;
                if !is_wanted() {
                    return Err(Error::new(ErrorKind::Backend, "the backup was given up"));
                }
            }
        }
    }
    // The last commit keeps the map of free pages, so that the file opens without a search for them.
    transaction.set_quick_repair(true);
    transaction.commit().map_err(|error| fault(error.into()))
}
