//! The open file of the writer thread: commits, the snapshot for readers, and recovery from a failed
//! disk.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, mpsc::Sender},
    time::{Duration, Instant},
};

use entable_core::{
    backend::rules,
    batch::Deadline,
    edm::Ticks,
    error::{Error, ErrorKind, Result, ServiceCode},
};
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, WriteTransaction};
use tokio::sync::watch;

use crate::{
    catalog::{self, Catalog},
    dictionary::Dictionary,
    file_format::{CATALOG, LAYOUTS, RowsDefinition, StoreId, TRASH, rows_table_name},
    group::{ApplyError, EngineFailure, GroupTransaction, LastChangedRow, WrittenGroup},
    job::{BatchAnswer, FailedReadAlarm, QueuedBatch, WriterJob},
    journal::{Journal, JournalFacts},
    journal_frame::FrameWriter,
    mark::{CommitMark, MarkWriter},
    open_file::{self, OpenedFile, Opening},
    open_writes::{OpenWrites, ReaderGate},
    options::{Durability, EmbeddedOptions},
    snapshot::{self, ReaderState, Snapshot},
    store_file::{StoreFile, catch_panic},
    stored_facts::StoredFacts,
    stored_row::{StoredRow, TableSeed},
    timestamp_bound::{TimestampBound, store_bound},
    watched_file::WatchedFile,
};

/// How long the writer starts no maintenance of its own after a failed step.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The part of a commit that is on disk when the commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitMode {
    /// Nothing: readers see the transaction, and a later commit writes it to disk.
    Unsynced,
    /// The transaction, as a frame of the journal. Tables are created and deleted in other modes, so each frame finds the
    /// tables of its time when it is replayed.
    Journaled,
    /// The transaction. If the process crashes, the next opening of the file searches all of it for free
    /// pages.
    Synced,
    /// Syncs the transaction and the map of free pages, so the file opens quickly after a crash. It costs one more
    /// sync.
    SyncedQuickRepair,
}

/// The mode of a commit, and the facts that it stores besides the changes of its transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitPlan {
    pub(crate) mode: CommitMode,
    /// The bound of Timestamps to store.
    pub(crate) bound: Option<Ticks>,
    /// The facts of the journal to store.
    pub(crate) journal: Option<JournalFacts>,
}

impl CommitPlan {
    pub(crate) const UNSYNCED: Self =
        Self { mode: CommitMode::Unsynced, bound: None, journal: None };
}

/// The open file, and the state of the writer thread.
pub(crate) struct WriterStore {
    pub(crate) file: StoreFile,
    pub(crate) options: EmbeddedOptions,
    /// The transaction of the engine that is open between writes at once. Before `database`: the file stays locked until
    /// both are dropped.
    pub(crate) open_writes: Option<OpenWrites>,
    /// Closed while there are open writes.
    pub(crate) gate: Arc<ReaderGate>,
    /// The engine. `None` after a disk failure, until the next job or maintenance step reopens the file.
    pub(crate) database: Option<Database>,
    /// The file that the engine writes, or wrote last.
    pub(crate) disk: WatchedFile,
    /// The id of the store in the open file, or `None` if it has none.
    id: Option<StoreId>,
    mark: MarkWriter,
    pub(crate) journal: Journal,
    pub(crate) catalog: Arc<Catalog>,
    /// The layouts of the rows in the file, and of open writes.
    pub(crate) layouts: Arc<Dictionary>,
    /// The ids of deleted tables whose rows still take space.
    pub(crate) trash: Vec<u64>,
    /// Names of deleted tables that stay taken, with the end of that time.
    names_being_deleted: HashMap<String, Ticks>,
    /// Publishes the newest snapshot to the readers, or that they have to wait or fail.
    pub(crate) reader_state: watch::Sender<ReaderState>,
    /// Lets a reader that gets a disk error ask the writer thread to open the file again. Each opening has its own.
    pub(crate) alarm: FailedReadAlarm,
    /// A time that no Timestamp seen so far exceeds.
    pub(crate) last: Ticks,
    pub(crate) bound: TimestampBound,
    /// The time of the first commit or open write that is not on disk yet, or `None` if there is none.
    pub(crate) unsynced: Option<Instant>,
    /// Whether the last commit was [`CommitMode::SyncedQuickRepair`] and the file opens quickly after a crash.
    pub(crate) opens_quickly: bool,
    /// No maintenance runs before this time, because the last one failed.
    pub(crate) no_maintenance_before: Option<Instant>,
    /// The error for the next flush: acknowledged writes were lost before they were on disk.
    pub(crate) lost_writes: Option<Error>,
    /// How long the last commit of rows took to reach the disk, or `None` if it was not synced.
    last_sync_duration: Option<Duration>,
}

impl WriterStore {
    /// Takes over an open file. Also returns the channel that provides readers with snapshots. `jobs` sends to the
    /// thread that calls this store.
    pub(crate) fn new(
        file: StoreFile,
        opened: OpenedFile,
        options: EmbeddedOptions,
        jobs: Weak<Sender<WriterJob>>,
    ) -> Result<(Self, watch::Receiver<ReaderState>)> {
        let (reader_state, receiver) = watch::channel(ReaderState::Paused);
        let mark = MarkWriter::new(file.path());
        let bound = TimestampBound::new(options.durability);
        let commits_before = match options.durability {
            Durability::Sync => options.commits_before_journal,
            Durability::Relaxed { .. } => None,
        };
        let journal = Journal::new(file.path().to_owned(), commits_before);
        let mut store = Self {
            file,
            options,
            open_writes: None,
            gate: Arc::default(),
            database: None,
            disk: opened.disk.clone(),
            id: None,
            mark,
            journal,
            catalog: Arc::default(),
            layouts: Arc::default(),
            trash: Vec::new(),
            names_being_deleted: HashMap::new(),
            reader_state,
            alarm: FailedReadAlarm::new(jobs),
            last: Ticks::default(),
            bound,
            unsynced: None,
            opens_quickly: true,
            no_maintenance_before: None,
            lost_writes: None,
            last_sync_duration: None,
        };
        store.load_opened_file(opened)?;
        if store.options.accepts_older {
            // The next opening must not find the commits missing that the user does without.
            store.write_mark();
        }
        Ok((store, receiver))
    }

    /// Reads catalog, deleted tables and the bound of Timestamps from a file that was opened, and publishes a
    /// snapshot.
    fn load_opened_file(&mut self, opened: OpenedFile) -> Result<()> {
        let OpenedFile { database, disk } = opened;
        let file = self.file.clone();
        let mut read = || -> Result<Catalog, redb::Error> {
            let facts = StoredFacts::read(&database)?;
            self.id = facts.store;
            self.last = self.bound.take_over(facts.bound, self.last);
            self.journal.take_over(facts.journal, disk.len()?);
            let transaction = database.begin_read()?;
            self.trash.clear();
            for item in transaction.open_table(TRASH)?.iter()? {
                self.trash.push(item?.0.value());
            }
            self.layouts = Arc::new(Dictionary::load(&transaction.open_table(LAYOUTS)?)?);
            Catalog::load_catalog(&transaction.open_table(CATALOG)?)
        };
        let catalog = catch_panic(&mut read).map_err(|error| file.engine_error(error))?;
        self.catalog = Arc::new(catalog);
        self.database = Some(database);
        self.disk = disk;
        self.alarm = self.alarm.for_next_opening();
        self.publish_snapshot()
    }

    /// Publishes a snapshot of the newest commit to the readers. If that fails, closes the file, which
    /// the next job or step of maintenance opens again; reads fail until then.
    pub(crate) fn publish_snapshot(&mut self) -> Result<()> {
        let database = self.database()?;
        let snapshot = self.file.catch_panic(|| {
            Snapshot::new(&self.file, database, &self.catalog, &self.layouts, &self.alarm)
        });
        let (state, result) = match snapshot {
            Ok(snapshot) => (ReaderState::Open(Arc::new(snapshot)), Ok(())),
            // An old snapshot would hide writes that are acknowledged: rather, reads fail.
            Err(error) => {
                // The writer thread may wait, if another thread has committed.
                self.alarm.request_reopen();
                (ReaderState::Stopped(error.to_string().into()), Err(error))
            }
        };
        self.reader_state.send_replace(state);
        if result.is_err() {
            self.close_database();
        }
        result
    }

    /// Publishes a snapshot after a commit. A failure leaves the commit and its answer good, so it is
    /// ignored: readers continue when the file is open again.
    pub(crate) fn publish_commit(&mut self) {
        drop(self.publish_snapshot());
    }

    /// Returns the engine, or an error if the file is not open.
    fn database(&self) -> Result<&Database> {
        let missing =
            || self.file.error_of_kind(ErrorKind::Backend, "the file could not be reopened");
        self.database.as_ref().ok_or_else(missing)
    }

    /// Closes the file and opens it again, after a failure of the disk or a compaction.
    pub(crate) fn reopen_file(&mut self) -> Result<()> {
        self.reader_state.send_replace(ReaderState::Paused);
        self.close_database();
        if self.unsynced.take().is_some() {
            self.lost_writes = Some(self.file.error_of_kind(
                ErrorKind::Backend,
                "the disk failed; acknowledged writes that were not yet on disk are lost",
            ));
        }
        self.opens_quickly = true;
        let opened = self.file.catch_panic(|| {
            let mark = self.mark.newest();
            let cache_bytes = self.options.cache_bytes;
            let opening =
                Opening { cache_bytes, verify_files_up_to_bytes: None, mark, accepts_older: false };
            open_file::open_without_creating(&self.file, opening)
        });
        let result = opened.and_then(|opened| self.load_opened_file(opened));
        if let Err(error) = &result {
            self.reader_state.send_replace(ReaderState::Stopped(error.to_string().into()));
        }
        result
    }

    /// Writes everything that was acknowledged to disk and closes the file, which unlocks it. Waits for
    /// reads that are under way, up to 5 s.
    pub(crate) fn sync_and_close_file(&mut self) -> Result<()> {
        let synced = self.sync_for_rest();
        // Once the engine is closed, reads of its snapshots fail: those under way may finish first.
        let closed = ReaderState::Stopped("the store was closed; reopen it".into());
        snapshot::replace_and_wait(&self.reader_state, closed);
        self.close_database();
        synced
    }

    /// Closes the engine, which unlocks the file.
    pub(crate) fn close_database(&mut self) {
        let (open_writes, database) = (self.open_writes.take(), self.database.take());
        let closed = catch_panic(|| {
            // In this order, since the file stays locked until both are dropped.
            drop(open_writes);
            drop(database);
            Ok(())
        });
        // A failure is ignored: it shows again when the file is opened.
        drop(closed);
        self.gate.open();
    }

    /// Returns how long a commit may stay off the disk, or `None` if every commit is synced.
    pub(crate) fn longest_sync_delay(&self) -> Option<Duration> {
        match self.options.durability {
            Durability::Sync => None,
            Durability::Relaxed { delay } => Some(delay),
        }
    }

    /// Returns the mode of the next commit of rows, whose last Timestamp is `last`: `Synced` if the store syncs each
    /// commit. Otherwise `SyncedQuickRepair` if the first unsynced commit is as old as the longest delay of a sync, or
    /// if the bound on disk does not cover `last`. Otherwise `Unsynced`.
    pub(crate) fn next_commit_mode(&self, last: Ticks) -> CommitMode {
        let Some(delay) = self.longest_sync_delay() else { return CommitMode::Synced };
        let is_due = self.unsynced.is_some_and(|since| since.elapsed() >= delay);
        // Without a sync, an older row in the journal could be replayed over a newer one.
        let is_due = is_due || self.journal.is_needed();
        // A store that syncs seldom can afford the second sync.
        if is_due || !self.bound.covers(last) {
            CommitMode::SyncedQuickRepair
        } else {
            CommitMode::Unsynced
        }
    }

    /// Commits waiting batches in one transaction, each batch as a whole or not at all. Returns the answer
    /// to each batch.
    pub(crate) fn commit_group(&mut self, group: &[QueuedBatch]) -> Result<Vec<BatchAnswer>> {
        self.open_if_closed()?;
        self.journal.create_if_due();
        let frame = self.journal.begin_frame();
        let mut last = self.last;
        let applied = catch_panic(|| {
            let mut transaction = self.begin_transaction()?;
            let (answers, written) = self.apply_group(&transaction, group, frame, &mut last)?;
            let frame = written.as_ref().and_then(|written| written.frame.as_ref());
            let has_room = frame.is_some_and(|frame| self.journal.reserve(frame));
            let mode = if has_room { CommitMode::Journaled } else { self.next_commit_mode(last) };
            let plan = self.plan_commit(mode, last);
            prepare_commit(&mut transaction, plan)?;
            Ok((transaction, answers, written, plan))
        });
        let (transaction, answers, written, plan) = match applied {
            Ok(applied) => applied,
            // Nothing was committed, so the file cannot contain the transaction.
            Err(error) => return Err(self.reopen_after_failure(error, |_| false)),
        };
        let Some(written) = written else {
            drop(transaction);
            if plan.mode == CommitMode::SyncedQuickRepair && self.unsynced.is_some() {
                // Earlier writes are due on disk, even if all batches of this group are refused.
                self.sync_when_due();
            }
            return Ok(answers);
        };
        let started = Instant::now();
        let committed = self.write_frame(written.frame, plan).and_then(|()| {
            // Only now: readers never see what a crash could lose.
            catch_panic(|| Ok(transaction.commit()?))
        });
        if let Err(error) = committed {
            return Err(self
                .reopen_after_failure(error, |store| store.contains_change(&written.last_change)));
        }
        #[cfg(feature = "simulation")]
        if plan.mode != CommitMode::Unsynced {
            std::thread::sleep(self.options.simulated_sync_delay);
            if let Some(count) = &self.options.sync_count {
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
        self.last_sync_duration = (plan.mode != CommitMode::Unsynced).then(|| started.elapsed());
        self.last = last;
        self.layouts = written.layouts;
        self.note_commit(plan);
        self.journal.count_commit();
        self.publish_commit();
        Ok(answers)
    }

    /// Writes the changes of a transaction to the journal, if that is the plan. They are on disk afterwards.
    fn write_frame(
        &mut self,
        frame: Option<FrameWriter>,
        plan: CommitPlan,
    ) -> Result<(), redb::Error> {
        match frame {
            Some(frame) if plan.mode == CommitMode::Journaled => {
                Ok(self.journal.append(frame, plan.bound)?)
            }
            _ => Ok(()),
        }
    }

    /// Begins a transaction. [Open writes](Self::commit_open_writes) must be committed before: the engine has one
    /// transaction at a time, and would block.
    pub(crate) fn begin_transaction(&self) -> Result<WriteTransaction, redb::Error> {
        let database = self.database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(database.begin_write()?)
    }

    /// Returns what a commit in the given mode does. `last` is the last Timestamp of the commit.
    fn plan_commit(&self, mode: CommitMode, last: Ticks) -> CommitPlan {
        if mode == CommitMode::Unsynced {
            return CommitPlan::UNSYNCED;
        }
        self.plan_with_bound(mode, self.bound.for_commit(last, self.options.clock.now()))
    }

    /// Returns what a durable commit does that stores `bound`.
    fn plan_with_bound(&self, mode: CommitMode, bound: Option<Ticks>) -> CommitPlan {
        if mode == CommitMode::Journaled {
            return CommitPlan { mode, bound, journal: None };
        }
        // With a journal, the next checkpoint is far away, and a crash before it must leave a file that opens quickly.
        let mode = if self.journal.has_file() { CommitMode::SyncedQuickRepair } else { mode };
        CommitPlan { mode, bound, journal: self.journal.facts_for_checkpoint(false) }
    }

    /// Applies the batches of a group to a transaction. Returns the answer to each, and the last change, if there is one.
    /// `last` is an upper bound of the Timestamps of applied batches, before and after the call.
    ///
    /// # Errors
    ///
    /// An error of the engine, for the whole group.
    fn apply_group(
        &self,
        transaction: &WriteTransaction,
        group: &[QueuedBatch],
        frame: Option<FrameWriter>,
        last: &mut Ticks,
    ) -> Result<(Vec<BatchAnswer>, Option<WrittenGroup>), redb::Error> {
        let layouts = self.layouts.clone();
        let mut applied = GroupTransaction::new(transaction, &self.catalog, layouts, frame);
        let mut answers = Vec::with_capacity(group.len());
        for write in group {
            let now = rules::next_write_time(&*self.options.clock, *last);
            let answer = self.apply_queued(&mut applied, write, now, last);
            answers.push(answer.map_err(|failure| failure.error)?);
        }
        Ok((answers, applied.into_written()))
    }

    /// Applies one batch at time `now` to a transaction, and returns its answer. A batch that is refused or past its
    /// deadline gets its error as the answer and changes nothing. Otherwise `last` becomes an upper bound of the
    /// Timestamps so far.
    pub(crate) fn apply_queued(
        &self,
        transaction: &mut GroupTransaction<'_>,
        write: &QueuedBatch,
        now: Ticks,
        last: &mut Ticks,
    ) -> Result<BatchAnswer, EngineFailure> {
        // A batch may have waited long behind others. Rows change right after this check.
        if let Some(Err(error)) = write.deadline.as_ref().map(Deadline::check) {
            return Ok(Err((None, error)));
        }
        match transaction.apply_batch(&write.table, &write.operations, now) {
            Ok((written, latest)) => {
                *last = latest;
                Ok(Ok(written))
            }
            Err(ApplyError::Operation(index, error)) => Ok(Err((Some(index), error))),
            Err(ApplyError::DamagedRow(index, key, damage)) => {
                Ok(Err((Some(index), self.file.damaged_row_error(&key, damage))))
            }
            Err(ApplyError::Engine(failure)) => Err(failure),
        }
    }

    /// Notes whether all commits are on disk, after a commit. If so, marks that they are.
    pub(crate) fn note_commit(&mut self, plan: CommitPlan) {
        if let Some(bound) = plan.bound {
            self.bound.note_stored(bound);
        }
        if let Some(facts) = plan.journal {
            self.journal.note_checkpoint(facts);
        }
        match plan.mode {
            CommitMode::Unsynced => _ = self.unsynced.get_or_insert_with(Instant::now),
            CommitMode::Journaled => {
                self.journal.note_committed();
                self.write_mark();
            }
            CommitMode::Synced | CommitMode::SyncedQuickRepair => {
                self.unsynced = None;
                self.write_mark();
            }
        }
        self.opens_quickly = match plan.mode {
            // The commits since the last checkpoint are not in the engine's file.
            CommitMode::Journaled => self.opens_quickly,
            mode => mode == CommitMode::SyncedQuickRepair,
        };
    }

    /// Marks the newest commit and the newest frame that are on disk. Neither this opening of the file nor a later one goes back behind it.
    fn write_mark(&mut self) {
        let commit = self.disk.newest_synced_commit();
        if let Some(store) = self.id {
            self.mark.write(CommitMark { store, commit, place: self.journal.next_place() });
            self.disk.raise_least_commit(commit);
        }
    }

    /// Opens the file again after a failed transaction, and returns the error for its caller. The error
    /// is `is_ambiguous` if the file does not open, or if `happened` returns `true`: the transaction is
    /// in the file or may be there. A file with a damaged page stays open if it still begins a
    /// transaction.
    pub(crate) fn reopen_after_failure(
        &mut self,
        error: redb::Error,
        happened: impl FnOnce(&Self) -> bool,
    ) -> Error {
        // A frame that is not committed has to be replayed.
        let in_file = matches!(error, redb::Error::Corrupted(_)) && !self.journal.is_ahead();
        let error = self.file.engine_error(error);
        if in_file && catch_panic(|| self.begin_transaction()).is_ok() {
            return error;
        }
        match self.reopen_file() {
            Ok(()) if !happened(self) => error,
            _ => {
                let what = "the disk failed during the commit; read the rows to see whether it took effect";
                self.file.error_of_kind(ErrorKind::Ambiguous, what).with_source(error)
            }
        }
    }

    /// Returns whether the file contains the last change of a transaction.
    fn contains_change(&self, change: &LastChangedRow) -> bool {
        let look = || -> Result<bool, redb::Error> {
            let database = self.database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
            let transaction = database.begin_read()?;
            let rows =
                transaction.open_table(RowsDefinition::new(&rows_table_name(change.table)))?;
            let (seed, key) = (TableSeed::of_table(change.table), &*change.change.key);
            let found = rows.get(key)?.map(|value| {
                let row = StoredRow::open(seed, &self.layouts, key, value.value());
                row.and_then(|row| row.to_row()).ok()
            });
            // A row contains its Timestamp, so no other write produces an equal row.
            Ok(match (found, &change.change.row) {
                (Some(found), Some(row)) => found.as_ref() == Some(row),
                (None, None) => true,
                _ => false,
            })
        };
        // A file that cannot be read may contain it.
        catch_panic(look).unwrap_or(true)
    }

    /// Runs and commits a transaction that creates or deletes tables, or does maintenance. After a
    /// failed commit, `happened` says whether the transaction is in the reopened file; the error is
    /// then `is_ambiguous`.
    pub(crate) fn run_transaction<T>(
        &mut self,
        mode: CommitMode,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
        happened: impl FnOnce(&Self) -> bool,
    ) -> Result<T> {
        self.open_if_closed()?;
        self.run_planned(self.plan_commit(mode, self.last), work, happened)
    }

    /// Runs and commits a transaction as [`run_transaction`](Self::run_transaction) does, by a plan.
    fn run_planned<T>(
        &mut self,
        plan: CommitPlan,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
        happened: impl FnOnce(&Self) -> bool,
    ) -> Result<T> {
        let written = catch_panic(|| {
            let mut transaction = self.begin_transaction()?;
            let value = work(&transaction)?;
            prepare_commit(&mut transaction, plan)?;
            Ok((transaction, value))
        });
        let (transaction, value) = match written {
            Ok(written) => written,
            Err(error) => return Err(self.reopen_after_failure(error, |_| false)),
        };
        match catch_panic(|| Ok(transaction.commit()?)) {
            Ok(()) => {
                self.note_commit(plan);
                Ok(value)
            }
            Err(error) => Err(self.reopen_after_failure(error, happened)),
        }
    }

    /// Opens the file if it could not be reopened after a failure.
    pub(crate) fn open_if_closed(&mut self) -> Result<()> {
        if self.database.is_none() { self.reopen_file() } else { Ok(()) }
    }

    /// Makes every commit that was acknowledged so far durable in the engine's file.
    pub(crate) fn sync_acknowledged_commits(&mut self) -> Result<()> {
        self.open_if_closed()?;
        let mode = CommitMode::SyncedQuickRepair;
        let plan = match self.options.durability {
            // Every write so far is on disk, and the next one can store a bound without a further sync.
            Durability::Sync => self.plan_with_bound(mode, self.bound.for_rest(self.last)),
            Durability::Relaxed { .. } => self.plan_commit(mode, self.last),
        };
        self.sync(plan)
    }

    /// Makes every commit durable in the engine's file before that is closed, stores the last Timestamp, and removes the
    /// journal. Does nothing if nothing of it is left to do.
    fn sync_for_rest(&mut self) -> Result<()> {
        let needs_sync = |store: &Self| store.unsynced.is_some() || store.journal.is_needed();
        if needs_sync(self) {
            self.open_if_closed()?;
        }
        let bound = self.bound.for_rest(self.last);
        let journal = self.journal.facts_for_checkpoint(true);
        let plan = CommitPlan { mode: CommitMode::SyncedQuickRepair, bound, journal };
        if self.unsynced.is_some() {
            return self.sync(plan);
        }
        if self.database.is_some() && (bound.is_some() || journal.is_some()) {
            let synced = self.sync(plan);
            // A bound that is not stored is only later than it has to be. But a store that needs its journal is not closed.
            if self.database.is_none() || self.journal.is_needed() {
                return synced;
            }
        }
        Ok(())
    }

    fn sync(&mut self, plan: CommitPlan) -> Result<()> {
        // The transaction changes no row: after a failure, the file does not show whether it was committed.
        self.run_planned(plan, |_| Ok(()), |_| true)
    }

    /// Syncs, and after a failure lets maintenance rest for [`REST_AFTER_FAILURE`].
    fn sync_when_due(&mut self) {
        let result = self.sync_acknowledged_commits();
        self.delay_maintenance_after_failure(&result);
    }

    /// Lets maintenance rest for [`REST_AFTER_FAILURE`] if its last step failed.
    pub(crate) fn delay_maintenance_after_failure(&mut self, result: &Result<()>) {
        // The error itself is dropped: the failure shows again in the next job.
        self.no_maintenance_before = result.is_err().then(|| Instant::now() + REST_AFTER_FAILURE);
    }

    /// Returns how long the last commit of rows took to reach the disk, or `None` if it was not synced.
    pub(crate) fn last_sync_duration(&self) -> Option<Duration> {
        self.last_sync_duration
    }

    /// Creates a table.
    pub(crate) fn create_table(&mut self, name: &str) -> Result<()> {
        let now = self.options.clock.now();
        self.catalog.refuse_existing(name)?;
        self.names_being_deleted.retain(|_, until| *until > now);
        if self.names_being_deleted.contains_key(&name.to_ascii_lowercase()) {
            let why = "the table is still being deleted; try again later";
            return Err(Error::service(ServiceCode::TableBeingDeleted, why).in_table(name));
        }
        let exists = |store: &Self| store.catalog.get(name).is_ok();
        let write = |transaction: &WriteTransaction| catalog::add_table(transaction, name, now);
        let entry = self.run_transaction(CommitMode::Synced, write, exists)?;
        self.catalog = Arc::new(self.catalog.with_table(entry));
        self.publish_commit();
        Ok(())
    }

    /// Deletes a table. Its rows take space until maintenance reclaims them.
    pub(crate) fn delete_table(&mut self, name: &str) -> Result<()> {
        let entry = self.catalog.get_for_delete(name)?.clone();
        self.run_transaction(
            CommitMode::Synced,
            |transaction| catalog::remove_table(transaction, &entry),
            |store| store.catalog.get(name).is_err(),
        )?;
        self.catalog = Arc::new(self.catalog.without_table(entry.id));
        self.trash.push(entry.id);
        // A time that is too long for ticks keeps the name taken as long as the store is open.
        let ticks = i64::try_from(self.options.deleting_takes.as_nanos() / 100);
        let until = self.options.clock.now().get().saturating_add(ticks.unwrap_or(i64::MAX));
        let until = Ticks::new(until).unwrap_or(Ticks::MAX);
        self.names_being_deleted.insert(name.to_ascii_lowercase(), until);
        self.publish_commit();
        Ok(())
    }

    /// Replaces the settings of a table, or of the store.
    pub(crate) fn set_settings(&mut self, table: Option<&str>, text: &str) -> Result<()> {
        let id = table.map(|name| self.catalog.get(name).map(|(_, entry)| entry.id)).transpose()?;
        let write = |transaction: &WriteTransaction| catalog::write_settings(transaction, id, text);
        // Other settings may be equal to these, so a failed commit leaves open whether they were written.
        self.run_transaction(CommitMode::Synced, write, |_| true)?;
        self.publish_commit();
        Ok(())
    }
}

/// Prepares a transaction for a commit by a plan.
pub(crate) fn prepare_commit(
    transaction: &mut WriteTransaction,
    plan: CommitPlan,
) -> Result<(), redb::Error> {
    // Also beside a frame that has the bound: the next checkpoint makes the frame invalid.
    if let Some(bound) = plan.bound {
        store_bound(transaction, bound)?;
    }
    if let Some(facts) = plan.journal {
        facts.store(transaction)?;
    }
    if let CommitMode::Unsynced | CommitMode::Journaled = plan.mode {
        transaction.set_durability(redb::Durability::None)?;
    }
    transaction.set_quick_repair(plan.mode == CommitMode::SyncedQuickRepair);
    Ok(())
}
