//! Maintenance of the file: syncs and reclaimed space while the writer thread is idle, and flush,
//! compaction and verification on demand.

use std::{
    fs::File,
    sync::Arc,
    time::{Duration, Instant},
};

use entable_core::error::{ErrorKind, Result};
use redb::{Database, StorageBackend};

use crate::{
    file_copy::FileCopy,
    file_format::{RowsDefinition, TRASH, rows_table_name},
    job::BegunCopy,
    open_file,
    snapshot::{self, ReaderState},
    writer_store::{CommitMode, WriterStore},
};

/// Idle time before the writer prepares the file to open quickly after a crash.
const IDLE_BEFORE_QUICK_REPAIR: Duration = Duration::from_millis(50);
/// Idle time before the writer puts the frames of the journal into the engine's file.
const IDLE_BEFORE_CHECKPOINT: Duration = Duration::from_secs(5);
/// Number of rows of deleted tables that one transaction removes. A write waits no longer than for one
/// such transaction.
const RECLAIMED_ROWS: usize = 2_000;

impl WriterStore {
    /// Returns how long the writer may wait for a job before the next step of maintenance is due.
    /// `None` if the writer may wait without limit, because no step is pending.
    pub(crate) fn time_to_maintenance(&self) -> Option<Duration> {
        if let Some(until) = self.no_maintenance_before {
            return Some(until.saturating_duration_since(Instant::now()));
        }
        // Readers fail until the file is open again, and a program that only reads sends no job that
        // would open it.
        if self.database.is_none() {
            return Some(Duration::ZERO);
        }
        // While a commit is not synced, its sync is due, which writes the map of free pages as
        // well.
        let quick_repair =
            (!self.opens_quickly && self.unsynced.is_none()).then_some(IDLE_BEFORE_QUICK_REPAIR);
        let checkpoint = self.journal.has_frames().then_some(IDLE_BEFORE_CHECKPOINT);
        let sync = self.unsynced.zip(self.longest_sync_delay());
        let sync = sync.map(|(since, delay)| delay.saturating_sub(since.elapsed()));
        let reclaim = (!self.trash.is_empty()).then_some(Duration::ZERO);
        [quick_repair, checkpoint, sync, reclaim].into_iter().flatten().min()
    }

    /// Does the most urgent step of maintenance: reopens the file, syncs commits that are due, or
    /// reclaims space. If the step fails, the next step is delayed.
    pub(crate) fn run_maintenance_step(&mut self) {
        // The rest after a failure is over. A disk that is full is tried again by the next write, or on closing.
        self.no_maintenance_before = None;
        if self.time_to_maintenance().is_none() {
            return;
        }
        let late = |since: Instant| {
            self.longest_sync_delay().is_some_and(|delay| since.elapsed() >= delay)
        };
        let result = match self.trash.last().copied() {
            _ if self.database.is_none() => self.reopen_file(),
            Some(id) if !self.unsynced.is_some_and(late) => {
                self.reclaim_rows(id, RECLAIMED_ROWS).map(drop)
            }
            _ => self.sync_acknowledged_commits(),
        };
        self.delay_maintenance_after_failure(&result);
    }

    /// Opens the file again after a read has found that the disk failed, unless another job has done so
    /// meanwhile.
    pub(crate) fn reopen_after_failed_read(&mut self) {
        // A file that is not open is opened by maintenance.
        if self.database.is_some() && self.alarm.is_reopen_requested() {
            let result = self.reopen_file();
            self.delay_maintenance_after_failure(&result);
        }
    }

    /// Writes all acknowledged commits to disk, and reopens the file if it is not open. Fails if acknowledged writes
    /// were lost since the last flush. Reports such a loss once: the next flush can succeed.
    pub(crate) fn flush_commits(&mut self) -> Result<()> {
        // Opening the file may find that acknowledged writes are lost, which this flush reports.
        self.open_if_closed()?;
        if self.lost_writes.is_none() && self.unsynced.is_some() {
            let synced = self.sync_acknowledged_commits();
            // A sync that fails may find that writes are lost, which says more than its own error, unless the sync may
            // have happened.
            return match (self.lost_writes.take(), synced) {
                (Some(_), Err(error)) if error.is_ambiguous() => Err(error),
                (Some(lost), _) => Err(lost),
                (None, synced) => synced,
            };
        }
        self.lost_writes.take().map_or(Ok(()), Err)
    }

    /// Removes up to `rows` rows of a deleted table, and the table itself when none are left. Returns whether
    /// the table is gone.
    fn reclaim_rows(&mut self, id: u64, rows: usize) -> Result<bool> {
        let name = rows_table_name(id);
        let gone = self.run_transaction(
            CommitMode::Synced,
            |transaction| {
                let mut table = transaction.open_table(RowsDefinition::new(&name))?;
                let mut removed = 0;
                for item in table.extract_if(|_, _| true)?.take(rows) {
                    // The iterator removes a row when it passes it.
                    item?;
                    removed += 1;
                }
                // The engine deletes no table that is open.
                drop(table);
                let gone = removed < rows;
                if gone {
                    transaction.delete_table(RowsDefinition::new(&name))?;
                    transaction.open_table(TRASH)?.remove(id)?;
                }
                Ok(gone)
            },
            // After a lost commit nobody has to know how much it removed: the next step goes on.
            |_| true,
        )?;
        if gone {
            self.trash.retain(|trash| *trash != id);
        }
        self.publish_commit();
        Ok(gone)
    }

    /// Returns unused space of the file to the file system.
    pub(crate) fn compact_file(&mut self) -> Result<()> {
        // Otherwise the rows of deleted tables would stay in the compacted file.
        while let Some(id) = self.trash.last().copied() {
            self.reclaim_rows(id, 10 * RECLAIMED_ROWS)?;
        }
        // Failed work on the file opens it again, which loses commits that are not on disk.
        self.sync_acknowledged_commits()?;
        let file = self.file.clone();
        self.with_readers_paused(|database| {
            database.compact().map(drop).map_err(|error| file.engine_error(error))
        })?;
        // Reopened, because the next commit of the open engine would let the file grow to its old size.
        self.reopen_file()
    }

    /// Checks every page of the file against its checksum.
    pub(crate) fn verify_file_pages(&mut self) -> Result<()> {
        // Work that fails opens the file again, which takes longer with frames.
        if self.journal.is_needed() {
            self.sync_acknowledged_commits()?;
        }
        let file = self.file.clone();
        self.with_readers_paused(|database| open_file::verify_pages(&file, database))
    }

    /// Begins a copy of the file as it is after the last commit. Everything that was acknowledged is in it.
    // On this thread, because between two commits the file has all pages of the last one.
    pub(crate) fn begin_copy(&mut self, target: File) -> Result<BegunCopy> {
        self.open_if_closed()?;
        if self.unsynced.is_some() || self.journal.is_needed() {
            self.sync_acknowledged_commits()?;
        }
        let source = self.disk.clone();
        let begun = source.len().and_then(|length| FileCopy::new(target, length));
        let copy = Arc::new(begun.map_err(|error| self.file.io_error(error))?);
        source.keep_bytes_for(&copy);
        Ok(BegunCopy { copy, newest_commit: source.newest_synced_commit(), source })
    }

    /// Runs work that needs the file for itself. New reads wait until the work is done. Running reads
    /// get up to 5 s to finish; if one still holds a snapshot then, fails without running the work.
    fn with_readers_paused(
        &mut self,
        work: impl FnOnce(&mut Database) -> Result<()>,
    ) -> Result<()> {
        // The engine compacts and checks a file only while nobody reads it.
        let snapshot = snapshot::replace_and_wait(&self.reader_state, ReaderState::Paused);
        let result = match &mut self.database {
            _ if snapshot.strong_count() > 0 => Err(self.file.error_of_kind(
                ErrorKind::Backend,
                "a scan has held a page for 5 s; poll the scan or drop it, and try again",
            )),
            Some(database) => self.file.catch_panic(|| work(database)),
            None => {
                Err(self.file.error_of_kind(ErrorKind::Backend, "the file could not be reopened"))
            }
        };
        match result {
            // Failed work may leave an engine that refuses everything. Where a reader still holds
            // the snapshot, the work has not run.
            Err(error) if snapshot.strong_count() == 0 => self.reopen_file().and(Err(error)),
            result => result.and(self.publish_snapshot()),
        }
    }
}
