//! The worker: its options, and its memory between rounds.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    handler::{Context, MessageHandlers},
    stats::{LastFailure, WorkerStats},
    stopping::StopSignal,
    visit::{LastPartitionVisit, LookBudget, TableAndPartitionKey},
};
use crate::{
    entity::{Message, TableEntity},
    error::{BoxError, Error},
    limits::saturating_u64,
    metering::Metering,
    outbox::state::Outbox,
    plan::outbox::ExpiryHour,
    queue::MessageQueue,
    row::{ETag, Row},
    store::{InFlight, Store},
    table::{Client, job::Listener},
};

/// The default number of partitions that are worked on concurrently.
const CONCURRENCY: usize = 16;

/// The number of outbox rows of one partition that are worked on concurrently.
pub(super) const ROWS_AT_ONCE: usize = 8;

/// The default time that a handler may take for a message.
const LEASE: Duration = Duration::from_secs(60);

/// The default time between two rounds.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long a queue message of an unknown type is left to other programs.
pub(super) const UNKNOWN_MESSAGE_WAIT: Duration = Duration::from_secs(60);

/// Does the work that writers left in other partitions: copies, lists, messages, moves.
///
/// A worker knows the types whose tables its client has opened, and the types registered with
/// [`with`](Self::with). It leaves work of other types to programs that know them.
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
    pub(super) concurrency: InFlight,
    pub(super) interval: Duration,
    pub(super) lease: Duration,
    pub(super) handler_time: Option<Duration>,
    pub(super) handlers: MessageHandlers,
    pub(super) queues: Vec<MessageQueue>,
    /// The time that handlers have after a stop, or `None` if they are dropped immediately.
    pub(super) stop_time: Option<Duration>,
    pub(super) stopping: StopSignal,
    on_error: Listener<Error>,
    memory: Arc<Mutex<WorkerMemory>>,
}

/// Table, PartitionKey and RowKey of an outbox row, compared as exact strings.
pub(super) type RowTexts = [String; 3];

/// The memory of a worker. It only saves requests: a worker that starts without it is still correct.
#[derive(Debug, Default)]
pub(super) struct WorkerMemory {
    /// Rows whose work is done and that are kept for a second look, with the ETag for which the work was done.
    pub(super) awaiting_second_look: BTreeMap<RowTexts, Option<ETag>>,
    /// The last visit of each partition, by table and PartitionKey.
    pub(super) visits: BTreeMap<TableAndPartitionKey, LastPartitionVisit>,
    pub(super) looks: LookBudget,
    /// The ids of queue messages of unknown types, each with the time when it was last received.
    pub(super) unknown_messages: BTreeMap<String, Instant>,
    /// The number of damaged directory markers in the last round.
    pub(super) damaged_markers: u64,
    /// The number of damaged expiry markers in the last sweep.
    pub(super) damaged_expiry: u64,
    /// Sweeps of hours before this one are complete.
    pub(super) swept_before: Option<ExpiryHour>,
    /// PartitionKey and RowKey of markers whose sweep failed, with the time of the next attempt.
    pub(super) sweeps_to_repeat: BTreeMap<(String, String), Instant>,
    /// The number of counted failures of each row, with the ETag that they belong to.
    pub(super) failure_counts: BTreeMap<RowTexts, (Option<ETag>, u32)>,
    pub(super) stats: WorkerStats,
    pub(super) last_failure: Option<LastFailure>,
    /// The number of failures since the last round without a failure.
    pub(super) failures_in_row: u64,
}

impl WorkerMemory {
    /// Forgets an outbox row that is gone.
    pub(super) fn forget_row(&mut self, row: &RowTexts) {
        self.awaiting_second_look.remove(row);
        self.failure_counts.remove(row);
    }

    /// Returns the outbox rows of a partition that are remembered.
    pub(super) fn rows_remembered_in(
        &self,
        table: &str,
        partition_key: &str,
    ) -> BTreeSet<RowTexts> {
        let first = [table.to_owned(), partition_key.to_owned(), String::new()];
        let is_there = |[of, key, _]: &&RowTexts| of == table && key == partition_key;
        let looks = self.awaiting_second_look.range(first.clone()..).map(|(row, _)| row);
        let failures = self.failure_counts.range(first..).map(|(row, _)| row);
        // The rows of one partition are adjacent.
        let looks = looks.take_while(is_there);
        looks.chain(failures.take_while(is_there)).cloned().collect()
    }
}

/// Selects the open work of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkSelectionByAge {
    /// All open work, including work of writers that are still active.
    All,
    /// Open work older than the grace time, which its writer should have finished.
    PastGrace,
}

/// The result of one round.
#[derive(Debug, Default)]
pub(super) struct RoundResult {
    /// Rows and messages with at least one step finished in the round.
    pub(super) progressed: u64,
    /// The number of rows and messages that another actor changed first.
    pub(super) raced: u64,
    /// The number of failures that count towards the poison table. `progressed` includes them, because each brings
    /// its row or message closer to the poison table.
    pub(super) counted: u64,
    /// The first failure that is not caused by a single row.
    pub(super) failure: Option<Error>,
}

impl RoundResult {
    /// Creates the result of a round that failed.
    pub(super) fn failed_round(failure: Error) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    pub(super) fn add_round(&mut self, other: Self) {
        self.progressed += other.progressed;
        self.raced += other.raced;
        self.counted += other.counted;
        self.failure = self.failure.take().or(other.failure);
    }

    /// Stores a failure, unless the round already has one.
    pub(super) fn keep_first_failure(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

impl WorkerMemory {
    /// Counts the unknown messages of queues, after forgetting those that were not received for three minutes.
    pub(super) fn count_unknown_messages(&mut self) -> u64 {
        // Each is hidden for `UNKNOWN_MESSAGE_WAIT`. If one did not return for longer, another program took it.
        self.unknown_messages.retain(|_, received| received.elapsed() < UNKNOWN_MESSAGE_WAIT * 3);
        saturating_u64(self.unknown_messages.len())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a worker, which does the work that writers left in other partitions.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker();
    /// assert_eq!(worker.stats().open, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn worker(&self) -> Worker {
        Worker {
            client: self.clone(),
            concurrency: InFlight::Default(CONCURRENCY),
            interval: INTERVAL,
            lease: self.outbox().longest_lease().min(LEASE),
            handler_time: None,
            handlers: MessageHandlers::default(),
            queues: Vec::new(),
            stop_time: None,
            stopping: StopSignal::default(),
            on_error: Listener::silent(),
            memory: Arc::default(),
        }
    }
}

impl Worker {
    /// Makes a type known to a worker whose client does not open any of the type's tables.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker().with::<Employee>();
    /// assert_eq!(worker.drain().await?.unknown, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with<E: TableEntity>(self) -> Self {
        self.outbox().add_type(E::SCHEMA);
        self
    }

    /// Sets how many partitions the worker works on concurrently, at least 1. The default is 16, or as many as
    /// the store welcomes if the client [adapts its rate](crate::ClientBuilder::adaptive_rate).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker().concurrency(4);
    /// assert_eq!(worker.drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn concurrency(self, partitions: usize) -> Self {
        Self { concurrency: InFlight::at_most(partitions), ..self }
    }

    /// Sets how long [`run`](Self::run) waits between two rounds through the directory. The default is 5 s.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker().interval(std::time::Duration::from_secs(1));
    /// assert_eq!(worker.drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Sets how long a message is hidden from other workers while it is handled. The default is 60 s. A handler
    /// that takes longer is dropped, which counts as a failure, and other workers may take the message. To let
    /// handlers take longer, set [`handler_time`](Self::handler_time).
    ///
    /// A lease that is longer than the write deadline
    /// ([`OutboxOptions::write_deadline`](crate::OutboxOptions::write_deadline)) minus 30 s is shortened to that time.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker().lease(std::time::Duration::from_secs(30));
    /// assert_eq!(worker.drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: lease.min(self.outbox().longest_lease()), ..self }
    }

    /// Sets how long a handler may take. The default is the [`lease`](Self::lease). If the time is longer than the
    /// lease, the worker renews the lease while the handler runs, which keeps other workers from taking the message.
    /// If the worker's process ends, other workers get the message when the last lease has expired.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable::prelude::*;
    ///
    /// let worker = Client::memory().worker();
    /// let worker = worker.lease(Duration::from_secs(30)).handler_time(Duration::from_secs(3600));
    /// assert_eq!(worker.stats().applied, 0);
    /// ```
    #[must_use]
    pub fn handler_time(self, time: Duration) -> Self {
        Self { handler_time: Some(time), ..self }
    }

    /// Lets [`run`](Self::run) stop cleanly. After `stop`, the worker takes nothing new, and running handlers and
    /// passes have this time to finish. It then drops the remaining ones and gives their leases back, and other
    /// workers can take their messages immediately. Without this option, `run` drops everything at once, and other
    /// workers have to wait for the leases to expire.
    ///
    /// Dropping a handler this way does not count as a failure. Giving leases back takes up to 5 s more, which a
    /// service manager must also allow before it kills the process.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker().stop_timeout(std::time::Duration::from_secs(20));
    /// // In a server: `tokio::signal::ctrl_c()`.
    /// worker.run(tokio::time::sleep(std::time::Duration::from_millis(20))).await;
    /// assert_eq!(worker.stats().failures, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stop_timeout(self, time: Duration) -> Self {
        Self { stop_time: Some(time), ..self }
    }

    /// Sets the handler for messages of type `M`.
    ///
    /// The handler is called at least once for each message, in no particular order. Several workers may call it at
    /// the same time. Its effects inside [`Context::once`] happen once.
    ///
    /// An error does not count if it or one of its sources is temporary: throttling, the network, lost races, lost
    /// answers. The message is then delivered again, later each time. Any other error, a panic, or taking longer than
    /// the [`lease`](Self::lease) counts as a failure. After [`poison_after`](crate::OutboxOptions::poison_after)
    /// failures, the message is moved to the poison table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # #[derive(serde::Serialize, serde::Deserialize, Message)]
    /// # struct Welcome { id: u32 }
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert(&employee(8, "Kwok"))?.emit(&Welcome { id: 8 })?;
    /// transaction.commit().await?;
    /// let worker = staff.client().worker().on(|_, welcome: Welcome| async move {
    ///     assert_eq!(welcome.id, 8);
    ///     Ok(())
    /// });
    /// assert_eq!(worker.drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on<M, F, T>(mut self, handler: F) -> Self
    where
        M: Message,
        F: Fn(Context, M) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.handlers.add_handler(handler);
        self
    }

    /// Adds a queue, whose messages are also delivered to the handlers of [`on`](Self::on).
    ///
    /// A message that was received more than [`poison_after`](crate::OutboxOptions::poison_after) times is put
    /// aside in the queue. [`MessageQueue::poisoned`] lists such messages. A message without a handler waits for
    /// another program.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # #[derive(serde::Serialize, serde::Deserialize, Message)]
    /// # struct Welcome { id: u32 }
    /// let client = Client::memory();
    /// let queue = client.queue("welcome");
    /// queue.send(&Welcome { id: 8 }).await?;
    /// let worker = client.worker().queue(&queue).on(|_, welcome: Welcome| async move {
    ///     assert_eq!(welcome.id, 8);
    ///     Ok(())
    /// });
    /// assert_eq!(worker.drain().await?.received, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn queue(mut self, queue: &MessageQueue) -> Self {
        self.queues.push(queue.clone());
        self
    }

    /// Calls `report` immediately with each failure that [`WorkerStats::failures`] counts: a failed request, refused
    /// credentials, or a handler that failed with a temporary error. The worker tries again. Failures that count
    /// towards the poison table are not reported.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// let worker = Client::memory().worker().on_error(|error| {
    ///     if error.is_denied() {
    ///         eprintln!("the worker is not let in: {error}");
    ///     }
    /// });
    /// assert_eq!(worker.stats().applied, 0);
    /// ```
    #[must_use]
    pub fn on_error(self, report: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self { on_error: Listener::new(report), ..self }
    }

    /// Returns the counts of the work done so far, and of the open work found in the last round.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let worker = client.worker();
    /// worker.drain().await?;
    /// assert_eq!(worker.stats().oldest, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> WorkerStats {
        let memory = &mut *self.lock_memory();
        // Open work is counted from the last visits, without a request.
        let mut stats = memory.visits.values().fold(memory.stats.clone(), WorkerStats::with_visit);
        // Queue messages and markers belong to no visited partition.
        stats.unknown += memory.count_unknown_messages() + memory.damaged_markers;
        stats.unknown += memory.damaged_expiry;
        stats.last_error = memory.last_failure.as_ref().map(LastFailure::to_worker_failure);
        stats
    }

    /// Counts a failure that does not count towards the poison table, and passes it to the listener.
    pub(super) fn count_and_report_failure(&self, error: &Error) {
        {
            let memory = &mut *self.lock_memory();
            memory.stats.failures += 1;
            memory.failures_in_row += 1;
            let (count, at) = (memory.failures_in_row, Instant::now());
            memory.last_failure = Some(LastFailure { error: error.clone(), count, at });
        }
        // The callback may ask the worker for its counts, so the memory must be unlocked.
        self.on_error.notify_callback(|| error.clone());
    }

    /// Returns a clone with its own stop signal, because other clones may run until other signals.
    pub(super) fn for_one_run(&self) -> Self {
        Self { stopping: StopSignal::default(), ..self.clone() }
    }

    /// Locks the worker's memory. Callers must not hold the lock across an `await`.
    pub(super) fn lock_memory(&self) -> MutexGuard<'_, WorkerMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time that a handler may take.
    pub(super) fn handler_time_limit(&self) -> Duration {
        self.handler_time.unwrap_or(self.lease)
    }

    pub(super) fn outbox(&self) -> &Arc<Outbox> {
        self.client.outbox()
    }

    /// Returns whether this worker's client reports metrics.
    pub(super) fn metering(&self) -> Metering {
        self.store().usage.metering
    }

    pub(super) fn store(&self) -> &Store {
        self.client.store()
    }
}

/// Returns the table, PartitionKey and RowKey under which the worker remembers a row.
pub(super) fn table_and_keys_of(table: &str, row: &Row) -> RowTexts {
    [table, row.partition_key(), row.row_key()].map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend::Memory, outbox::options::OutboxOptions};

    #[test]
    fn no_lease_is_longer_than_receipts_allow() {
        let worker_of = |write_deadline: u64| {
            let options =
                OutboxOptions::default().write_deadline(Duration::from_secs(write_deadline));
            let options = options.request_timeout(Duration::from_secs(10));
            Client::builder().backend(Memory::new()).outbox(options).build().unwrap().worker()
        };
        assert_eq!(worker_of(50).lease, Duration::from_secs(20));
        assert_eq!(worker_of(50).lease(Duration::from_secs(40)).lease, Duration::from_secs(20));
        assert_eq!(worker_of(300).lease, LEASE);
    }

    #[test]
    fn a_row_that_is_gone_is_forgotten_and_rows_elsewhere_stay() {
        let row = |partition_key: &str, row_key: &str| -> RowTexts {
            ["Staff".to_owned(), partition_key.to_owned(), row_key.to_owned()]
        };
        let mut memory = WorkerMemory::default();
        for partition_key in ["A", "B", "C"] {
            memory.awaiting_second_look.insert(row(partition_key, "1"), None);
            memory.awaiting_second_look.insert(row(partition_key, "2"), None);
            memory.failure_counts.insert(row(partition_key, "2"), (None, 1));
            memory.failure_counts.insert(row(partition_key, "3"), (None, 1));
        }
        let remembered = memory.rows_remembered_in("Staff", "B");
        assert!(remembered.iter().eq(&[row("B", "1"), row("B", "2"), row("B", "3")]));
        assert!(memory.rows_remembered_in("Other", "B").is_empty());
        remembered.iter().for_each(|row| memory.forget_row(row));
        assert!(memory.rows_remembered_in("Staff", "B").is_empty());
        assert_eq!((memory.awaiting_second_look.len(), memory.failure_counts.len()), (4, 4));
    }
}
