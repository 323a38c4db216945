//! Rows in one file: durable, transactional, by the service's rules.
//!
//! The engine (redb) is known to this folder alone. One thread writes; readers share a snapshot
//! that it renews after each commit, so neither waits for the other.

mod apply;
mod catalog;
mod chores;
mod faults;
mod job;
mod layout;
mod open;
mod options;
mod put;
mod scan;
mod store;
#[cfg(test)]
mod tests;
mod view;
mod writer;

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread::JoinHandle,
};

use faults::Place;
use job::{Job, Write};
pub use options::{Durability, EmbeddedOptions};
use store::Store;
use tokio::sync::{oneshot, watch};
use view::Reading;

use super::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest, rules};
use crate::{
    batch::{Batch, Written},
    clock::Clock,
    error::Result,
    limits,
    row::Row,
};

/// A backend that keeps rows in one file by the service's rules.
///
/// ```
/// use entable::{
///     Batch, Operation, Row,
///     backend::{Backend, Embedded, Read, TableRequest},
/// };
/// # let directory = std::env::temp_dir().join(format!("entable-embedded-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("staff.db");
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Embedded::open(&path)?;
/// store.tables(TableRequest::Create("Staff")).await?;
/// let row = Row::build("Sales", "empid_000223").finish()?;
/// store.apply(&Batch::single("Staff", Operation::insert(row))?).await?;
/// drop(store);
///
/// let store = Embedded::open(&path)?;
/// let read =
///     Read { table: "staff", partition_key: "Sales", row_key: "empid_000223", select: None };
/// assert!(store.read(read).await?.is_some());
/// # Ok::<(), entable::Error>(())
/// # })?;
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Embedded {
    place: Place,
    readings: watch::Receiver<Reading>,
    clock: Arc<dyn Clock>,
    /// `None` once the writer is told to end.
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("path", &self.place.path()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Opens the store in that file, or creates it; every write is on disk before it is
    /// acknowledged. [`options`](Self::options) opens it otherwise.
    ///
    /// # Errors
    ///
    /// * `is_locked`: another process or another handle has it open;
    /// * `is_not_found`: the directory does not exist;
    /// * `is_denied`: the file or its directory cannot be written;
    /// * `is_corrupt`: the file is not a store, or is damaged;
    /// * `is_unsupported`: a newer version of this crate wrote it;
    /// * `is_backend`: the disk is full or fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// How a store is opened.
    pub fn options() -> EmbeddedOptions {
        EmbeddedOptions::new()
    }

    fn with_options(path: &Path, options: EmbeddedOptions) -> Result<Self> {
        let place = Place::new(path);
        let database = place.guarded(|| {
            let mut database = open::open(&place, options.cache_bytes)?;
            let size = path.metadata().map_err(|error| place.io(error))?.len();
            if size <= options.verify_up_to {
                open::verify(&place, &mut database)?;
            }
            Ok(database)
        })?;
        let clock = options.clock.clone();
        let (store, readings) = Store::new(place.clone(), database, options)?;
        let (jobs, waiting) = channel();
        let thread = std::thread::Builder::new().name("entable writer".to_owned());
        let writer = thread.spawn(move || writer::run(store, &waiting));
        let writer = writer.map_err(|error| place.io(error))?;
        Ok(Self { place, readings, clock, jobs: Some(jobs), writer: Some(writer) })
    }

    /// Returns when everything that was acknowledged before is on disk. Only stores of
    /// [`Durability::Relaxed`] have anything to wait for.
    ///
    /// # Errors
    ///
    /// `is_backend` where the disk fails.
    pub async fn flush(&self) -> Result<()> {
        self.ask(Job::Flush).await?
    }

    /// Gives the space of deleted rows and tables back to the disk. Reads and writes wait
    /// meanwhile: some seconds for a million rows.
    ///
    /// # Errors
    ///
    /// `is_backend` where the disk fails, or where a scan that is not polled holds its page for
    /// seconds.
    pub async fn compact(&self) -> Result<()> {
        self.ask(Job::Compact).await?
    }

    /// Looks at every page of the file and its checksum. Reads and writes wait meanwhile: about a
    /// second for two gigabytes that the system holds in memory.
    ///
    /// Every row that is read is checked anyway; this finds damage where nothing reads yet.
    ///
    /// # Errors
    ///
    /// `is_corrupt` where the file is damaged, and as [`compact`](Self::compact).
    pub async fn verify(&self) -> Result<()> {
        self.ask(Job::Verify).await?
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job(sender)).is_ok());
        match sent {
            true => answer.await.map_err(|_| view::stopped(&self.place)),
            false => Err(view::stopped(&self.place)),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so on standard error already.
            drop(writer.join());
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Embedded {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("embedded", true).exclusive()
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            let Read { table, partition_key, row_key, select } = request;
            rules::check_keys(table, partition_key, row_key)?;
            let view = view::newest(&self.place, &self.readings).await?;
            match (view.row(table, partition_key, row_key)?, select) {
                (Some(row), Some(_)) => rules::selected(&row, select).map(Some),
                (row, _) => Ok(row),
            }
        })
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            let view = view::newest(&self.place, &self.readings).await?;
            let date = self.clock.now();
            let page = scan::page(view, request).await?;
            Ok(Rows { date: Some(date), ..page })
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            rules::check_batch(batch)?;
            let table = batch.table().to_owned();
            let operations = batch.shared_operations();
            let answer = self.ask(|answer| Job::Write(Write { table, operations, answer })).await?;
            answer.map_err(|(index, error)| match index {
                Some(index) => rules::failed(error, batch, index),
                None => error.in_table(batch.table()),
            })
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            match request {
                TableRequest::Create(name) => {
                    limits::check_table_name(name)?;
                    self.ask(|answer| Job::Create(name.to_owned(), answer)).await??;
                }
                TableRequest::Delete(name) => {
                    self.ask(|answer| Job::Delete(name.to_owned(), answer)).await??;
                }
                TableRequest::List { from } => {
                    let view = view::newest(&self.place, &self.readings).await?;
                    return Ok(view.catalog().list(from));
                }
            }
            Ok(TableNames::default())
        })
    }
}
