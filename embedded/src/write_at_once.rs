//! Writes at once: small batches with relaxed durability, applied on their caller's thread. They leave the engine's
//! transaction open, and point reads find them there.
//!
//! A commit of the engine costs more than applying a small batch, and without a sync it only makes the batch visible to
//! snapshots. That is not needed before somebody takes one. So such a batch is acknowledged while its transaction is still
//! open, and the next batch joins the same transaction. The first of these commits it:
//!
//! - a reader, before it takes a snapshot: reads always find what was acknowledged. A point read does not need one as long
//!   as it can [look into the open writes](WriterStore::look_into_open_writes);
//! - a job of the writer thread, and so also the sync that is due;
//! - the batch after which it has [`MOST_BYTES`].
//!
//! This does not change what a crash can lose: commits that are not synced are lost, just like an open transaction. Either
//! may have been read before.

use std::collections::HashMap;

use entable_core::{
    backend::{ReadRequest, rules},
    edm::Ticks,
    error::ErrorKind,
    key::encode_sort_key,
};

use crate::{
    group::{EngineFailure, GroupTransaction, WrittenGroup},
    job::{BatchAnswer, QueuedBatch},
    open_writes::{FoundRow, MOST_READS, OpenWrites},
    snapshot::ReaderState,
    store_file::catch_panic,
    writer_store::{CommitMode, CommitPlan, WriterStore, prepare_commit},
};

/// Number of bytes of rows after which an open transaction is committed. The next reader waits for the commit, which has
/// to compute the checksums of all changed pages.
const MOST_BYTES: usize = 128 * 1024;

impl WriterStore {
    /// Applies one batch on its caller's thread, and leaves the transaction open. Returns `None`, with nothing of the batch
    /// written, if the writer thread must handle it: the commit has to wait for the disk, or the engine has failed.
    pub(crate) fn write_at_once(&mut self, batch: &QueuedBatch) -> Option<BatchAnswer> {
        let now = catch_panic(|| Ok(rules::next_write_time(&*self.options.clock, self.last)));
        let now = now.ok()?;
        if self.database.is_none() || self.next_commit_mode(now) != CommitMode::Unsynced {
            return None;
        }
        let open = match self.open_writes.take() {
            Some(open) => open,
            None => catch_panic(|| self.begin_open_writes()).ok()?,
        };
        match catch_panic(|| Ok(self.apply_at_once(&open, batch, now))) {
            Ok(Ok((answer, _, None))) => {
                self.keep_or_commit(open);
                Some(answer)
            }
            Ok(Ok((answer, last, Some(written)))) if self.bound.covers(last) => {
                (self.last, self.layouts) = (last, written.layouts);
                self.note_commit(CommitPlan::UNSYNCED);
                let table = written.last_change.table;
                self.gate.close();
                self.keep_or_commit(open.with_batch(table, batch, written.bytes)).then_some(answer)
            }
            Ok(Err(EngineFailure { is_torn: false, .. })) => {
                self.keep_or_commit(open);
                None
            }
            // The transaction may have a part of the batch.
            _ => {
                self.abandon_open_writes(open);
                None
            }
        }
    }

    pub(crate) fn begin_open_writes(&self) -> Result<OpenWrites, redb::Error> {
        let mut transaction = self.begin_transaction()?;
        prepare_commit(&mut transaction, CommitPlan::UNSYNCED)?;
        Ok(OpenWrites {
            transaction,
            changed: HashMap::new(),
            reads: 0,
            bytes: 0,
            layouts_before: self.layouts.clone(),
            unsynced_before: self.unsynced,
        })
    }

    /// Applies a batch to the open transaction. Also returns an upper bound of all Timestamps so far, and what was written.
    fn apply_at_once(
        &self,
        open: &OpenWrites,
        batch: &QueuedBatch,
        now: Ticks,
    ) -> Result<(BatchAnswer, Ticks, Option<WrittenGroup>), EngineFailure> {
        let layouts = self.layouts.clone();
        let mut group = GroupTransaction::new(&open.transaction, &self.catalog, layouts, None);
        let mut last = self.last;
        let answer = self.apply_queued(&mut group, batch, now, &mut last)?;
        Ok((answer, last, group.into_written()))
    }

    /// Keeps a transaction open for the next write at once. Commits it if it is full or readers wait, and drops it if
    /// nothing was written. Returns `false` if a commit has failed.
    fn keep_or_commit(&mut self, open: OpenWrites) -> bool {
        if open.bytes == 0 {
            // A failure is ignored: nothing is lost, and it shows again when the file is closed.
            drop(catch_panic(|| Ok(open.transaction.abort()?)));
            return true;
        }
        let is_full = open.bytes >= MOST_BYTES;
        self.open_writes = Some(open);
        if is_full || self.gate.has_readers() { self.commit_open_writes() } else { true }
    }

    /// Commits the open writes, if there are some, and shows them to readers. Returns `false` if they are lost, because the
    /// commit has failed. The file is then closed until the writer thread opens it again, which notes the loss, and readers
    /// wait for that.
    pub(crate) fn commit_open_writes(&mut self) -> bool {
        let Some(open) = self.open_writes.take() else { return true };
        let committed = catch_panic(|| Ok(open.transaction.commit()?));
        if committed.is_ok() {
            self.publish_commit();
        } else {
            self.reader_state.send_replace(ReaderState::Paused);
            self.close_database();
            self.alarm.request_reopen();
        }
        // Only now: a reader that finds the gate open takes the published snapshot.
        self.gate.open();
        committed.is_ok()
    }

    /// Gives up the open writes. The next flush reports that they are lost.
    pub(crate) fn abandon_open_writes(&mut self, open: OpenWrites) {
        self.layouts = open.layouts_before;
        self.unsynced = open.unsynced_before;
        if open.bytes > 0 {
            let what = "a write failed; acknowledged writes that were not yet on disk are lost";
            self.lost_writes = Some(self.file.error_of_kind(ErrorKind::Backend, what));
        }
        // A failure is ignored: the engine shows it again, in the next transaction or when the file is closed.
        drop(catch_panic(|| Ok(open.transaction.abort()?)));
        self.gate.open();
    }

    /// Looks up one row with the selected properties, open writes included. Returns `None` if the reader has to commit
    /// the open writes first, or if there are none.
    pub(crate) fn look_into_open_writes(&mut self, request: ReadRequest<'_>) -> Option<FoundRow> {
        let open = self.open_writes.as_mut()?;
        let key = encode_sort_key(request.partition_key, request.row_key);
        let table = self.catalog.get(request.table).map(|(_, entry)| entry.id);
        let Some(table) = table.ok().filter(|table| open.has_changed(*table, &key)) else {
            let ReaderState::Open(snapshot) = &*self.reader_state.borrow() else { return None };
            return Some(FoundRow::InSnapshot(snapshot.clone()));
        };
        if open.reads >= MOST_READS {
            return None;
        }
        open.reads += 1;
        let look = || open.read_changed_row(table, &key, &self.layouts, request.select);
        // A failure is dropped: if the engine fails again in the commit or the snapshot, the reader gets that error.
        let answer = catch_panic(look).ok()?;
        let answer = answer.map_err(|damage| self.file.damaged_row_error(&key, damage));
        Some(FoundRow::InTransaction(answer))
    }
}
