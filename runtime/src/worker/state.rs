//! The worker: its options, what it remembers, and how it is run.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    handler::Context,
    handler::Handlers,
    queues,
    round::{Due, Round},
    stats::Visit,
    stats::WorkerStats,
};
use crate::{
    entity::{Message, TableEntity},
    error::{BoxError, Result},
    outbox::options::SERVER_LIMIT,
    queue::MessageQueue,
    row::ETag,
    store::backoff,
    table::Client,
};
use futures_util::future::{Either, join, select};
use tokio::time::Instant;

/// Partitions that a worker works on at a time.
const CONCURRENCY: usize = 16;

/// How long a handler has a message.
const LEASE: Duration = Duration::from_secs(60);

/// How long a worker waits between two looks at the directory.
const INTERVAL: Duration = Duration::from_secs(5);

/// Does what writers left to be done in other partitions.
///
/// It knows the types whose tables this client has opened, and those that are named with
/// [`with`](Self::with). Work of others is left to the programs that know them.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(
///     name = "Staff",
///     partition_key = "{department}",
///     row_key = "empid_{id:06}",
///     index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id:06}")
/// )]
/// pub struct Employee { pub department: String, pub id: u32, pub email: String }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let client = Client::memory();
/// let staff = client.table::<Employee>();
/// staff.create().await?;
/// staff.insert(&Employee { department: "Sales".into(), id: 223, email: "don@a.com".into() }).await?;
/// let done = client.worker().drain().await?;
/// assert_eq!(done.open, 0);
///
/// let don = Employee::by_email().email("don@a.com").department("Sales").id(223);
/// assert!(staff.get(don).await?.is_some());
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Worker {
    pub(super) client: Client,
    pub(super) concurrency: usize,
    pub(super) interval: Duration,
    pub(super) lease: Duration,
    pub(super) handlers: Handlers,
    pub(super) queues: Vec<MessageQueue>,
    memory: Arc<Mutex<Memory>>,
}

/// Table, PartitionKey and RowKey of a row of the outbox, compared by exact text.
pub(super) type RowTexts = [String; 3];

/// What a worker remembers; nothing that is wrong without it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Rows that were worked on and wait for their second look, in which version.
    pub(super) looked: BTreeMap<RowTexts, Option<ETag>>,
    /// What partitions looked like when they were visited last.
    pub(super) visits: BTreeMap<(String, String), Visit>,
    /// Messages of queues that nobody here knows, and when they were met.
    pub(super) unknown: BTreeMap<String, Instant>,
    /// Rows of the directory that could not be read when it was looked at last.
    pub(super) unread_markers: u64,
    /// Failures for good, by row.
    pub(super) failures: BTreeMap<RowTexts, (Option<ETag>, u32)>,
    pub(super) stats: WorkerStats,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

impl Client {
    /// A worker for what writers left to be done in other partitions.
    pub fn worker(&self) -> Worker {
        Worker {
            client: self.clone(),
            concurrency: CONCURRENCY,
            interval: INTERVAL,
            lease: LEASE,
            handlers: Handlers::default(),
            queues: Vec::new(),
            memory: Arc::default(),
        }
    }
}

impl Worker {
    /// Makes a type known, for a worker that opens none of its tables.
    #[must_use]
    pub fn with<E: TableEntity>(self) -> Self {
        self.client.outbox().meet(E::SCHEMA);
        self
    }

    /// Partitions to work on at a time: 16 unless told.
    #[must_use]
    pub fn concurrency(self, partitions: usize) -> Self {
        Self { concurrency: partitions.max(1), ..self }
    }

    /// How long [`run`](Self::run) waits between two looks at the directory: 5 s unless told.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// How long a handler may take for a message: it is dropped then, which counts as a failure, and
    /// other workers may take the message. 60 s unless told.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        // Nobody may have a message for longer than receipts stay.
        let most = self.client.outbox().options.flight.saturating_sub(SERVER_LIMIT);
        Self { lease: lease.min(most), ..self }
    }

    /// The function that messages of a type are handed to.
    ///
    /// It is called at least once for each message, in no order, and maybe by several workers at
    /// once; what it does inside [`Context::once`] takes place once.
    ///
    /// An error that passes, itself or among its sources, does not count: throttling, the network, lost
    /// races, lost answers; the message comes again, later each time. Any other error, a panic, or more
    /// time than the [`lease`](Self::lease) counts; after some of these
    /// ([`POISON_AFTER`](crate::OutboxOptions)) the message is put into the poison table.
    #[must_use]
    pub fn on<M, F, T>(mut self, handler: F) -> Self
    where
        M: Message,
        F: Fn(Context, M) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.handlers.add(handler);
        self
    }

    /// Hands over the messages of that queue as well, to the functions that are given to
    /// [`on`](Self::on).
    ///
    /// A message that was received more often than work is tried
    /// ([`poison_after`](crate::OutboxOptions)) is put aside in the queue:
    /// [`MessageQueue::poisoned`] lists those. One that no function is for waits.
    #[must_use]
    pub fn queue(mut self, queue: &MessageQueue) -> Self {
        self.queues.push(queue.clone());
        self
    }

    /// What was done so far, and what was open when it was looked at last.
    pub fn stats(&self) -> WorkerStats {
        let memory = &mut *self.memory();
        let mut stats = memory.visits.values().fold(memory.stats.clone(), WorkerStats::with);
        stats.unknown += queues::still_unknown(&mut memory.unknown) + memory.unread_markers;
        stats
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all that can be done now, young work too, and returns.
    ///
    /// What is left then waits for its second look ([`waiting`](WorkerStats::waiting)), is of types
    /// that this program does not know, or was put into the poison table. Rows elsewhere that wait
    /// for a second look are as they should be already.
    ///
    /// # Errors
    ///
    /// The first failure of the backend that kept coming back, after everything else was done.
    pub async fn drain(&self) -> Result<WorkerStats> {
        self.client.wait_for_copies().await;
        let mut attempt = 0;
        loop {
            let round = self.round(Due::Everything).await;
            let mut round = round.unwrap_or_else(Round::failed);
            round.add(self.drain_queues().await);
            if round.moved > 0 {
                attempt = 0;
                continue;
            }
            match round.failure {
                None if round.raced == 0 => return Ok(self.stats()),
                Some(failure) if attempt >= backoff::ATTEMPTS => return Err(failure),
                None if attempt >= backoff::ATTEMPTS => return Ok(self.stats()),
                _ => backoff::wait(&self.client.store().random, attempt).await,
            }
            attempt += 1;
        }
    }

    /// Works until `stop` is ready: a signal, a channel, a timer. What is under way then is dropped,
    /// and done by the next worker.
    ///
    /// Failures of the backend are counted and tried again.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let work = async {
            loop {
                if self.round(Due::Aged).await.is_err() {
                    self.memory().stats.failures += 1;
                }
                tokio::time::sleep(self.interval).await;
            }
        };
        let work = join(work, self.run_queues());
        match select(pin!(stop), pin!(work)).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
}
