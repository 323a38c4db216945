//! A layer that behaves like a storage account under load. It throttles, some of its answers are slow, and its
//! partitions move between servers.

mod bucket;
mod options;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use self::{
    bucket::Bucket,
    options::{AccountOptions, Latency, Moves},
};
use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::{
            forward::forward_to_inner,
            partition::{
                count_to_f64, partition_of_batch, partition_of_read, partition_of_scan,
                stable_partition_hash,
            },
        },
    },
    batch::{Batch, Written},
    error::{Error, Result, ServiceCode},
    random::RandomSource,
    row::Row,
    timers,
};

/// The minimum number of partitions with buckets before the layer drops empty buckets. It drops them whenever there are
/// also twice as many as remained the last time.
const FEW_PARTITIONS: usize = 4_096;

/// A layer that answers as a storage account under load does.
///
/// Each partition takes 2,000 entities a second and the account 20,000 requests a second, the service's
/// [targets](crate::limits::ACCOUNT_REQUESTS_PER_SECOND); what exceeds them fails with `ServerBusy`. A
/// transaction counts as its entities for its partition and as one request for the account. A query counts
/// as its rows for their partitions. Answers take 5 ms, and one in a hundred takes 40 ms or more.
///
/// The layer waits by the clock of tokio. In a test with a paused clock, hours of load pass in seconds. The
/// same seed gives the same answers to the same requests.
///
/// Not simulated: how large entities are, how a partition's limit grows as the service learns of its load, and
/// requests that fail although they were carried out ([`FaultInjector`](super::FaultInjector) makes those).
///
/// ```
/// use entable_core::{
///     Batch, Error, Operation, Row,
///     backend::{Backend, Memory, TableRequest, layer::SimulatedAccount},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let account = SimulatedAccount::around(Memory::new(), 7).entities_per_second_of_partition(100);
/// account.tables(TableRequest::Create("Staff")).await?;
/// let row = |id: u32| Row::build("Sales", &format!("{id:03}")).finish();
/// let mut batch = Batch::new("Staff");
/// for id in 0..20 {
///     batch.push(Operation::insert(row(id)?))?;
/// }
/// account.apply(&batch).await?;
/// // 20 entities are as many as this partition takes in 200 ms.
/// let next = Batch::single("Staff", Operation::insert(row(20)?))?;
/// assert!(account.apply(&next).await.is_err_and(|error| error.is_throttled()));
/// tokio::time::sleep(std::time::Duration::from_millis(200)).await;
/// account.apply(&next).await?;
/// assert_eq!(account.figures().throttled, 1);
/// # Ok::<(), Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct SimulatedAccount {
    inner: Arc<dyn Backend>,
    account: Arc<Account>,
}

/// The counts of a [`SimulatedAccount`] since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AccountFigures {
    /// The number of requests, including refused ones.
    pub requests: u64,
    /// Requests that were refused because the account or a partition was over its limit.
    pub throttled: u64,
    /// Requests that were refused because their partition was being moved.
    pub moved: u64,
    /// Entities that were written, and rows that were read.
    pub entities: u64,
}

#[derive(Debug)]
struct Account {
    seed: u64,
    random: RandomSource,
    state: Mutex<AccountState>,
}

#[derive(Debug)]
struct AccountState {
    options: AccountOptions,
    made: Instant,
    requests: Bucket,
    partitions: HashMap<u64, Bucket>,
    /// The number of tracked partitions above which empty ones are dropped.
    most_partitions: usize,
    figures: AccountFigures,
}

impl SimulatedAccount {
    /// Makes a layer in front of `backend`. `seed` decides which answers are late and which partitions move.
    pub fn around(backend: impl Backend, seed: u64) -> Self {
        let now = Instant::now();
        let state = AccountState {
            options: AccountOptions::default(),
            made: now,
            requests: Bucket::new(now),
            partitions: HashMap::new(),
            most_partitions: FEW_PARTITIONS,
            figures: AccountFigures::default(),
        };
        let account =
            Account { seed, random: RandomSource::seeded(seed), state: Mutex::new(state) };
        Self { inner: Arc::new(backend), account: Arc::new(account) }
    }

    /// Sets how many entities a partition takes in a second; 2,000 by default.
    #[must_use]
    pub fn entities_per_second_of_partition(self, entities: u32) -> Self {
        self.with_options(|options| options.partition_entities = f64::from(entities))
    }

    /// Sets how many requests the account takes in a second; 20,000 by default.
    #[must_use]
    pub fn requests_per_second_of_account(self, requests: u32) -> Self {
        self.with_options(|options| options.account_requests = f64::from(requests))
    }

    /// Sets how long a burst may last: for this time after a pause, the account and each partition accept everything.
    /// The default is 100 ms.
    #[must_use]
    pub fn burst(self, time: Duration) -> Self {
        self.with_options(|options| options.burst = time)
    }

    /// Sets the median time of an answer and its 99th percentile; 5 and 40 ms by default. Two equal times make
    /// every answer take this time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable_core::backend::{Memory, layer::SimulatedAccount};
    ///
    /// let account = SimulatedAccount::around(Memory::new(), 7);
    /// let account = account.latency(Duration::from_millis(20), Duration::from_millis(300));
    /// # let _ = account;
    /// ```
    #[must_use]
    pub fn latency(self, median: Duration, p99: Duration) -> Self {
        self.with_options(|options| options.latency = Latency { median, p99 })
    }

    /// Lets every refusal ask for a wait, as `Retry-After` does. By default none does.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        self.with_options(|options| options.retry_after = Some(wait))
    }

    /// Moves a sixteenth of the partitions to another server again and again, `every` so often. Requests for
    /// these partitions fail with `ServerBusy` for the time `lasting`.
    #[must_use]
    pub fn moves(self, every: Duration, lasting: Duration) -> Self {
        self.with_options(|options| options.moves = Some(Moves { every, lasting }))
    }

    /// Reduces both limits to this share from now on, such as 0.1 for a tenth. 1 restores them.
    pub fn limit_to_share(&self, share: f64) {
        self.account.lock().options.share = share.max(0.0);
    }

    /// Returns what the account has done so far.
    pub fn figures(&self) -> AccountFigures {
        self.account.lock().figures
    }

    fn with_options(self, set: impl FnOnce(&mut AccountOptions)) -> Self {
        set(&mut self.account.lock().options);
        self
    }

    /// Answers a simulated request without rows. It counts as `entities` entities and, if it is admitted, as a page of
    /// `rows_of_page` rows.
    #[doc(hidden)]
    pub async fn answer(
        &self,
        partition: Option<u64>,
        entities: usize,
        rows_of_page: usize,
    ) -> Result<()> {
        self.admit(partition, entities).await?;
        if let Some(partition) = partition {
            self.account.charge(std::iter::repeat_n(partition, rows_of_page));
        }
        Ok(())
    }

    /// Returns the mean time of an answer.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable_core::backend::{Memory, layer::SimulatedAccount};
    ///
    /// assert!(SimulatedAccount::around(Memory::new(), 7).mean_latency() < Duration::from_secs(1));
    /// ```
    pub fn mean_latency(&self) -> Duration {
        self.account.lock().options.latency.mean()
    }

    /// Waits for the latency of the answer, and refuses a request over the limits.
    async fn admit(&self, partition: Option<u64>, entities: usize) -> Result<()> {
        let (admitted, time) = self.account.admit(partition, entities);
        timers::sleep(time).await;
        admitted
    }
}

impl Account {
    fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides whether a request is over the limits, and chooses the time of its answer at random.
    fn admit(&self, partition: Option<u64>, entities: usize) -> (Result<()>, Duration) {
        let now = Instant::now();
        let mut state = self.lock();
        let time = state.options.latency.draw(&self.random);
        state.figures.requests += 1;
        let rate = state.options.account_rate();
        if !state.requests.admit(1.0, rate, now) {
            return (Err(state.refuse("the account is over its limit")), time);
        }
        let Some(partition) = partition else { return (Ok(()), time) };
        let since = now.saturating_duration_since(state.made);
        if state.options.moves.is_some_and(|moves| moves.is_moving(self.seed, partition, since)) {
            state.figures.moved += 1;
            return (Err(state.busy("the partition is being moved")), time);
        }
        let rate = state.options.partition_entity_rate();
        if !state.bucket(partition, now).admit(count_to_f64(entities), rate, now) {
            return (Err(state.refuse("the partition is over its limit")), time);
        }
        state.figures.entities += entities as u64;
        (Ok(()), time)
    }

    /// Counts the rows of a page, each for its partition.
    fn charge(&self, partitions: impl Iterator<Item = u64>) {
        let now = Instant::now();
        let mut state = self.lock();
        let rate = state.options.partition_entity_rate();
        for partition in partitions {
            state.bucket(partition, now).charge(1.0, rate, now);
            state.figures.entities += 1;
        }
    }
}

impl AccountState {
    fn bucket(&mut self, partition: u64, now: Instant) -> &mut Bucket {
        if self.partitions.len() >= self.most_partitions {
            let rate = self.options.partition_entity_rate();
            self.partitions.retain(|_, bucket| !bucket.is_empty(rate, now));
            self.most_partitions = FEW_PARTITIONS.max(self.partitions.len() * 2);
        }
        self.partitions.entry(partition).or_insert_with(|| Bucket::new(now))
    }

    fn refuse(&mut self, message: &str) -> Error {
        self.figures.throttled += 1;
        self.busy(message)
    }

    fn busy(&self, message: &str) -> Error {
        let error = Error::service(ServiceCode::ServerBusy, message);
        match self.options.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for SimulatedAccount {
    forward_to_inner!(origin);
    forward_to_inner!(store);

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(async move {
            self.admit(Some(partition_of_read(&request)), 1).await?;
            self.inner.read(request).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        Box::pin(async move {
            self.admit(partition_of_scan(&request), 0).await?;
            let page = self.inner.scan(request).await?;
            let rows = page.rows.iter().flatten();
            let partition = |row: &Row| stable_partition_hash(request.table, row.partition_key());
            self.account.charge(rows.map(partition));
            Ok(page)
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        Box::pin(async move {
            self.admit(partition_of_batch(batch), batch.len()).await?;
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(async move {
            self.admit(None, 0).await?;
            self.inner.tables(request).await
        })
    }
}
