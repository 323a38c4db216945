//! The open file in the writer's hands: commits, what readers see of them, and getting over a disk
//! that failed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use redb::{Database, ReadableDatabase, ReadableTable, WriteTransaction};
use tokio::sync::watch;

use super::{
    apply::{Group, Mark, Refusal, Wrote},
    catalog::{self, Catalog},
    faults::{Place, guarded},
    job::{Answer, Write},
    layout::{self, CATALOG, META, RowTable, TRASH, meta, rows_name},
    open,
    options::{Durability, EmbeddedOptions},
    view::{Reading, View},
};
use crate::{
    backend::rules,
    edm::Ticks,
    error::{Error, ErrorKind, Result, ServiceCode},
};

/// How a transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    /// Visible, not on disk.
    Relaxed,
    /// On disk. After a crash the file is walked when it opens, to find its free pages.
    Durable,
    /// On disk with the map of the free pages, so that the file opens at once after a crash: one
    /// sync more.
    Tidy,
}

/// The file, and what the writer knows of it.
pub(super) struct Store {
    pub(super) place: Place,
    options: EmbeddedOptions,
    /// `None` after a failure of the disk, until the file opens again.
    pub(super) database: Option<Database>,
    catalog: Arc<Catalog>,
    /// Deleted tables whose rows still take space.
    pub(super) trash: Vec<u64>,
    /// Names that stay taken for a while after their table was deleted, and until when.
    deleting: HashMap<String, Ticks>,
    pub(super) readings: watch::Sender<Reading>,
    /// The time of the last write.
    last: Ticks,
    /// Since when something is committed that is not on disk.
    pub(super) unsynced: Option<Instant>,
    /// Whether the last commit was [`Commit::Tidy`].
    pub(super) tidy: bool,
    /// After a failed chore: until when none is tried.
    pub(super) rest: Option<Instant>,
    /// Why writes that were acknowledged and not yet on disk are gone.
    pub(super) lost: Option<Error>,
}

impl Store {
    /// Takes over an open file.
    pub(super) fn new(
        place: Place,
        database: Database,
        options: EmbeddedOptions,
    ) -> Result<(Self, watch::Receiver<Reading>)> {
        let (readings, receiver) = watch::channel(Reading::Paused);
        let mut store = Self {
            place,
            options,
            database: None,
            catalog: Arc::default(),
            trash: Vec::new(),
            deleting: HashMap::new(),
            readings,
            last: Ticks::default(),
            unsynced: None,
            tidy: true,
            rest: None,
            lost: None,
        };
        store.load(database)?;
        Ok((store, receiver))
    }

    fn load(&mut self, database: Database) -> Result<()> {
        let place = self.place.clone();
        let mut read = || -> Result<Catalog, redb::Error> {
            let transaction = database.begin_read()?;
            let facts = transaction.open_table(META)?;
            let tick = facts.get(meta::TICK)?.and_then(|bytes| bytes.value().try_into().ok());
            let tick = tick.map(i64::from_le_bytes).and_then(Ticks::new).unwrap_or_default();
            self.last = self.last.max(tick);
            self.trash.clear();
            for item in transaction.open_table(TRASH)?.iter()? {
                self.trash.push(item?.0.value());
            }
            Catalog::load(&transaction.open_table(CATALOG)?)
        };
        let catalog = guarded(&mut read).map_err(|error| place.engine(error))?;
        self.catalog = Arc::new(catalog);
        self.database = Some(database);
        self.renew()
    }

    /// Shows the newest commit to readers.
    pub(super) fn renew(&mut self) -> Result<()> {
        let database = self.database()?;
        let view = self.place.guarded(|| View::new(&self.place, database, &self.catalog));
        let (reading, result) = match view {
            Ok(view) => (Reading::Open(Arc::new(view)), Ok(())),
            Err(error) => (Reading::Stopped(error.to_string().into()), Err(error)),
        };
        self.readings.send_replace(reading);
        result
    }

    pub(super) fn database(&self) -> Result<&Database> {
        let missing = || self.place.error(ErrorKind::Backend, "it could not be opened again");
        self.database.as_ref().ok_or_else(missing)
    }

    /// Opens the file again after a failure.
    pub(super) fn reopen(&mut self) -> Result<()> {
        self.readings.send_replace(Reading::Paused);
        self.release();
        if self.unsynced.take().is_some() {
            self.lost = Some(self.place.error(
                ErrorKind::Backend,
                "the disk failed, and writes of the last moments that were not flushed are lost",
            ));
        }
        self.tidy = true;
        let opened = self.place.guarded(|| open::again(&self.place, self.options.cache_bytes));
        let result = opened.and_then(|database| self.load(database));
        if let Err(error) = &result {
            self.readings.send_replace(Reading::Stopped(error.to_string().into()));
        }
        result
    }

    /// Closes the file, with everything that was acknowledged on disk.
    pub(super) fn close(mut self) {
        if self.unsynced.is_some() {
            // Nobody is left to hear of a failure; the engine tries once more when it closes.
            drop(self.sync());
        }
        self.readings.send_replace(Reading::Paused);
        self.release();
    }

    /// Gives the file up: the engine unlocks it only when its handle is gone.
    fn release(&mut self) {
        let database = self.database.take();
        let closed = guarded(|| {
            drop(database);
            Ok(())
        });
        // What it failed at shows when the file is opened.
        drop(closed);
    }

    pub(super) fn delay(&self) -> Option<Duration> {
        match self.options.durability {
            Durability::Sync => None,
            Durability::Relaxed { delay } => Some(delay),
        }
    }

    /// How the next rows are committed. A store that syncs seldom can afford the sync that makes it
    /// open at once.
    fn next_commit(&self) -> Commit {
        match (self.delay(), self.unsynced) {
            (None, _) => Commit::Durable,
            (Some(delay), Some(since)) if since.elapsed() >= delay => Commit::Tidy,
            (Some(_), _) => Commit::Relaxed,
        }
    }

    /// Commits what waits, each batch wholly or not at all.
    pub(super) fn commit(&mut self, group: &[Write]) -> Result<Vec<Answer>> {
        if self.database.is_none() {
            self.reopen()?;
        }
        let how = self.next_commit();
        let mut last = self.last;
        let applied = guarded(|| {
            let transaction = self.begin(how)?;
            let (answers, wrote) = self.apply(&transaction, group, &mut last)?;
            if wrote.deleted {
                note_tick(&transaction, last)?;
            }
            Ok((transaction, answers, wrote))
        });
        let (transaction, answers, wrote) = match applied {
            Ok(applied) => applied,
            Err(error) => return Err(self.settle(error, |_| false)),
        };
        let Some(mark) = wrote.last else {
            drop(transaction);
            if how == Commit::Tidy {
                // Batches that are all refused do not put the disk off.
                self.chore();
            }
            return Ok(answers);
        };
        if let Err(error) = guarded(|| Ok(transaction.commit()?)) {
            return Err(self.settle(error, |store| store.holds(&mark)));
        }
        self.last = last;
        self.committed(how);
        if self.renew().is_err() {
            // What is written is written: the next job opens the file again.
            self.database = None;
        }
        Ok(answers)
    }

    fn begin(&self, how: Commit) -> Result<WriteTransaction, redb::Error> {
        let database = self.database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        let mut transaction = database.begin_write()?;
        if how == Commit::Relaxed {
            transaction.set_durability(redb::Durability::None)?;
        }
        transaction.set_quick_repair(how == Commit::Tidy);
        Ok(transaction)
    }

    fn apply(
        &self,
        transaction: &WriteTransaction,
        group: &[Write],
        last: &mut Ticks,
    ) -> Result<(Vec<Answer>, Wrote), redb::Error> {
        let mut applied = Group::new(transaction, &self.catalog);
        let mut answers = Vec::with_capacity(group.len());
        for write in group {
            let now = rules::next_write(&*self.options.clock, *last);
            answers.push(match applied.apply(&write.table, &write.operations, now) {
                Ok(written) => {
                    *last = now;
                    Ok(written)
                }
                Err(Refusal::Operation(index, error)) => Err((Some(index), error)),
                Err(Refusal::Damaged(index, key)) => Err((Some(index), self.place.damaged(&key))),
                Err(Refusal::Engine(error)) => return Err(error),
            });
        }
        Ok((answers, applied.finish()))
    }

    fn committed(&mut self, how: Commit) {
        match how {
            Commit::Relaxed => _ = self.unsynced.get_or_insert_with(Instant::now),
            Commit::Durable | Commit::Tidy => self.unsynced = None,
        }
        self.tidy = how == Commit::Tidy;
    }

    /// Gets over a failure. `happened` looks into the opened file whether the transaction is there.
    pub(super) fn settle(
        &mut self,
        error: redb::Error,
        happened: impl FnOnce(&Self) -> bool,
    ) -> Error {
        let in_file = matches!(error, redb::Error::Corrupted(_));
        let error = self.place.engine(error);
        if in_file && guarded(|| self.begin(Commit::Durable)).is_ok() {
            return error;
        }
        match self.reopen() {
            Ok(()) if !happened(self) => error,
            _ => {
                let what = "the disk failed during the commit, read again whether it happened";
                self.place.error(ErrorKind::Ambiguous, what).with_source(error)
            }
        }
    }

    /// Whether the file has the row that a transaction left.
    fn holds(&self, mark: &Mark) -> bool {
        let look = || -> Result<bool, redb::Error> {
            let database = self.database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
            let transaction = database.begin_read()?;
            let rows = transaction.open_table(RowTable::new(&rows_name(mark.table)))?;
            let found = rows.get(&*mark.change.key)?;
            let found = found.map(|value| layout::unseal(&mark.change.key, value.value()));
            Ok(match (found, &mark.change.row) {
                (Some(found), Some(row)) => found.as_ref() == Some(row),
                (None, None) => true,
                _ => false,
            })
        };
        // Not known: as good as there.
        guarded(look).unwrap_or(true)
    }

    /// A durable transaction that is not of rows.
    pub(super) fn change<T>(
        &mut self,
        how: Commit,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
        happened: impl FnOnce(&Self) -> bool,
    ) -> Result<T> {
        if self.database.is_none() {
            self.reopen()?;
        }
        let written = guarded(|| {
            let transaction = self.begin(how)?;
            let value = work(&transaction)?;
            Ok((transaction, value))
        });
        let (transaction, value) = match written {
            Ok(written) => written,
            Err(error) => return Err(self.settle(error, |_| false)),
        };
        match guarded(|| Ok(transaction.commit()?)) {
            Ok(()) => {
                self.committed(how);
                Ok(value)
            }
            Err(error) => Err(self.settle(error, happened)),
        }
    }

    /// Creates a table.
    pub(super) fn create(&mut self, name: &str) -> Result<()> {
        let now = self.options.clock.now();
        self.catalog.refuse_existing(name)?;
        self.deleting.retain(|_, until| *until > now);
        if self.deleting.contains_key(&name.to_ascii_lowercase()) {
            let why = "the table is still being deleted, try again later";
            return Err(Error::service(ServiceCode::TableBeingDeleted, why).in_table(name));
        }
        let exists = |store: &Self| store.catalog.get(name).is_ok();
        let write = |transaction: &WriteTransaction| catalog::create(transaction, name, now);
        let entry = self.change(Commit::Durable, write, exists)?;
        self.catalog = Arc::new(self.catalog.with(entry));
        self.renew()
    }

    /// Deletes a table; its rows are reclaimed later.
    pub(super) fn delete(&mut self, name: &str) -> Result<()> {
        let entry = self.catalog.doomed(name)?.clone();
        let last = self.last;
        self.change(
            Commit::Durable,
            |transaction| {
                catalog::delete(transaction, &entry)?;
                note_tick(transaction, last)
            },
            |store| store.catalog.get(name).is_err(),
        )?;
        self.catalog = Arc::new(self.catalog.without(entry.id));
        self.trash.push(entry.id);
        let ticks = i64::try_from(self.options.deleting_takes.as_nanos() / 100);
        let until = self.options.clock.now().get().saturating_add(ticks.unwrap_or(i64::MAX));
        let until = Ticks::new(until).unwrap_or(Ticks::MAX);
        self.deleting.insert(name.to_ascii_lowercase(), until);
        self.renew()
    }
}

/// Keeps the time of the last write where no row keeps it, so that a row that comes back never has
/// an ETag of its past.
fn note_tick(transaction: &WriteTransaction, last: Ticks) -> Result<(), redb::Error> {
    let mut facts = transaction.open_table(META)?;
    facts.insert(meta::TICK, &last.get().to_le_bytes()[..])?;
    Ok(())
}
