//! The one thread that writes: it takes what waits, commits it in one transaction, renews what
//! readers see, and answers.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Instant,
};

use redb::{Database, ReadableDatabase};
use tokio::sync::{oneshot, watch};

use super::{
    apply::{Group, Refusal},
    catalog::{self, Catalog},
    faults::Place,
    layout::{CATALOG, META, meta},
    options::{Durability, EmbeddedOptions},
    view::{Reading, View},
};
use crate::{
    backend::rules,
    batch::{Operation, Written},
    clock::Clock,
    edm::Ticks,
    error::{Error, Result},
};

/// Batches of one transaction: enough to share a sync, few enough that the first does not wait long
/// for the last.
const GROUP_BATCHES: usize = 512;
/// Bytes of one transaction, about.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// What became of a batch; an error has the position of its operation, where it is of one.
pub(super) type Answer = Result<Vec<Written>, (Option<usize>, Error)>;

/// What the writer is asked to do.
pub(super) enum Job {
    Write(Write),
    Create(String, oneshot::Sender<Result<()>>),
    Delete(String, oneshot::Sender<Result<()>>),
    Flush(oneshot::Sender<Result<()>>),
}

/// A batch that waits.
pub(super) struct Write {
    pub(super) table: String,
    pub(super) operations: Vec<Operation>,
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Write {
    fn bytes(&self) -> usize {
        self.operations.iter().map(|operation| operation.row().as_bytes().len()).sum()
    }
}

pub(super) struct Writer {
    place: Place,
    database: Database,
    catalog: Arc<Catalog>,
    readings: watch::Sender<Reading>,
    clock: Arc<dyn Clock>,
    durability: Durability,
    last: Ticks,
    /// Since when something is committed that is not on disk.
    unsynced: Option<Instant>,
}

impl Writer {
    /// The writer of an open file, and what its readers see.
    pub(super) fn new(
        place: Place,
        database: Database,
        options: &EmbeddedOptions,
    ) -> Result<(Self, watch::Receiver<Reading>)> {
        let fault = |error: redb::Error| place.engine(error);
        let transaction = database.begin_read().map_err(|error| fault(error.into()))?;
        let table = transaction.open_table(CATALOG).map_err(|error| fault(error.into()))?;
        let catalog = Arc::new(Catalog::load(&place, &table)?);
        let facts = transaction.open_table(META).map_err(|error| fault(error.into()))?;
        let tick = facts.get(meta::TICK).map_err(|error| fault(error.into()))?;
        let tick = tick.and_then(|bytes| bytes.value().try_into().ok()).map(i64::from_le_bytes);
        let view = View::new(&place, &database, &catalog)?;
        let (readings, receiver) = watch::channel(Reading::Open(Arc::new(view)));
        let writer = Self {
            place,
            database,
            catalog,
            readings,
            clock: options.clock.clone(),
            durability: options.durability,
            last: tick.and_then(Ticks::new).unwrap_or_default(),
            unsynced: None,
        };
        Ok((writer, receiver))
    }

    /// Works until no handle is left.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            match self.next(jobs) {
                Ok(job) => self.work(job, jobs),
                Err(RecvTimeoutError::Timeout) => drop(self.sync()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(self.sync());
    }

    fn next(&self, jobs: &Receiver<Job>) -> Result<Job, RecvTimeoutError> {
        match (self.unsynced, self.durability) {
            (Some(since), Durability::Relaxed { delay }) => {
                jobs.recv_timeout(delay.saturating_sub(since.elapsed()))
            }
            _ => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn work(&mut self, job: Job, jobs: &Receiver<Job>) {
        let mut after = None;
        match job {
            Job::Write(first) => after = self.write(first, jobs),
            other => after = Some(other),
        }
        match after {
            None => {}
            Some(Job::Write(write)) => drop(self.write(write, jobs)),
            Some(Job::Create(name, answer)) => drop(answer.send(self.create(&name))),
            Some(Job::Delete(name, answer)) => drop(answer.send(self.delete(&name))),
            Some(Job::Flush(answer)) => drop(answer.send(self.sync())),
        }
    }

    /// Commits what waits; gives back the job of another kind that came in between.
    fn write(&mut self, first: Write, jobs: &Receiver<Job>) -> Option<Job> {
        let mut bytes = first.bytes();
        let mut group = vec![first];
        let mut other = None;
        while group.len() < GROUP_BATCHES && bytes < GROUP_BYTES {
            match jobs.try_recv() {
                Ok(Job::Write(write)) => {
                    bytes += write.bytes();
                    group.push(write);
                }
                Ok(job) => {
                    other = Some(job);
                    break;
                }
                Err(_) => break,
            }
        }
        match self.commit(&group) {
            Ok(answers) => {
                for (write, answer) in group.into_iter().zip(answers) {
                    drop(write.answer.send(answer));
                }
            }
            Err(error) => {
                let message = error.to_string();
                for write in group {
                    let error = Error::new(error.kind(), message.clone());
                    drop(write.answer.send(Err((None, error))));
                }
            }
        }
        other
    }

    fn commit(&mut self, group: &[Write]) -> Result<Vec<Answer>> {
        let place = self.place.clone();
        let mut transaction = self.database.begin_write().map_err(|error| place.engine(error))?;
        let relaxed = self.may_wait();
        if relaxed {
            let durability = redb::Durability::None;
            transaction.set_durability(durability).map_err(|error| place.engine(error))?;
        }
        let mut applied = Group::new(&transaction, &self.catalog);
        let mut answers = Vec::with_capacity(group.len());
        let mut last = self.last;
        for write in group {
            let now = rules::next_write(&*self.clock, last);
            answers.push(match applied.apply(&write.table, &write.operations, now) {
                Ok(written) => {
                    last = now;
                    Ok(written)
                }
                Err(Refusal::Operation(index, error)) => Err((Some(index), error)),
                Err(Refusal::Engine(error)) => return Err(place.engine(error)),
            });
        }
        let (wrote, deleted) = (applied.wrote, applied.deleted);
        drop(applied);
        if !wrote {
            transaction.abort().map_err(|error| place.engine(error))?;
            return Ok(answers);
        }
        if deleted {
            note_tick(&transaction, last).map_err(|error| place.engine(error))?;
        }
        transaction.commit().map_err(|error| place.engine(error))?;
        self.last = last;
        match relaxed {
            true => _ = self.unsynced.get_or_insert_with(Instant::now),
            false => self.unsynced = None,
        }
        self.renew()?;
        Ok(answers)
    }

    /// Whether the next commit need not be on disk yet.
    fn may_wait(&self) -> bool {
        match (self.durability, self.unsynced) {
            (Durability::Sync, _) => false,
            (Durability::Relaxed { delay }, Some(since)) => since.elapsed() < delay,
            (Durability::Relaxed { .. }, None) => true,
        }
    }

    /// Shows the newest commit to readers.
    fn renew(&mut self) -> Result<()> {
        let view = View::new(&self.place, &self.database, &self.catalog)?;
        self.readings.send_replace(Reading::Open(Arc::new(view)));
        Ok(())
    }

    fn create(&mut self, name: &str) -> Result<()> {
        self.catalog.refuse_existing(name)?;
        let place = self.place.clone();
        let transaction = self.database.begin_write().map_err(|error| place.engine(error))?;
        let entry = catalog::create(&transaction, name, self.clock.now())
            .map_err(|error| place.engine(error))?;
        transaction.commit().map_err(|error| place.engine(error))?;
        self.unsynced = None;
        self.catalog = Arc::new(self.catalog.with(entry));
        self.renew()
    }

    fn delete(&mut self, name: &str) -> Result<()> {
        let entry = self.catalog.doomed(name)?.clone();
        let place = self.place.clone();
        let transaction = self.database.begin_write().map_err(|error| place.engine(error))?;
        catalog::delete(&transaction, &entry)
            .and_then(|()| note_tick(&transaction, self.last))
            .map_err(|error| place.engine(error))?;
        transaction.commit().map_err(|error| place.engine(error))?;
        self.unsynced = None;
        self.catalog = Arc::new(self.catalog.without(entry.id));
        self.renew()
    }

    /// Brings everything that was acknowledged onto the disk.
    fn sync(&mut self) -> Result<()> {
        if self.unsynced.is_none() {
            return Ok(());
        }
        let place = self.place.clone();
        let transaction = self.database.begin_write().map_err(|error| place.engine(error))?;
        transaction.commit().map_err(|error| place.engine(error))?;
        self.unsynced = None;
        Ok(())
    }
}

/// Keeps the time of the last write where no row keeps it, so that a row that comes back never has
/// an ETag of its past.
fn note_tick(transaction: &redb::WriteTransaction, last: Ticks) -> Result<(), redb::Error> {
    let mut facts = transaction.open_table(META)?;
    facts.insert(meta::TICK, &last.get().to_le_bytes()[..])?;
    Ok(())
}
