//! A layer that sends as fast as the store takes, and slows down where it refuses.

mod pace;
mod traffic;

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use self::{pace::Pace, traffic::Traffic};
use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::{
            forward::forward_to_inner,
            partition::{amount, partition_of_batch, partition_of_read, partition_of_scan},
        },
    },
    batch::{Batch, Written},
    error::Result,
    row::Row,
    timers,
};

/// Paces that nobody needs any more are looked for when there are this many.
const MANY_PACES: usize = 1_024;

/// A layer that sends as fast as the store takes.
///
/// It sends every request at once until the store answers that it is too busy. From then on it keeps a pace
/// for what was refused: for a partition that gets far more than the others, or for the account. A refusal
/// lowers the pace to nine tenths, and each second in which it is used up raises it by 2 %, and by more if nothing is
/// refused for long. Requests wait for
/// their turn in the order in which they came. Those of a partition with a pace of its own hold back no
/// others.
///
/// The layer repeats no request: put [`Retry`](super::Retry) around it, as
/// [`ClientBuilder::adaptive_rate`](crate::ClientBuilder::adaptive_rate) does.
///
/// ```
/// use entable::{backend::{Memory, layer::AdaptiveRate}, prelude::*};
///
/// let store = AdaptiveRate::around(Memory::new());
/// let client = Client::builder().backend(store).retry(RetryPolicy::default()).build()?;
/// # let _ = client;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AdaptiveRate {
    inner: Arc<dyn Backend>,
    state: Arc<Mutex<RateState>>,
}

#[derive(Debug)]
struct RateState {
    traffic: Traffic,
    account: Option<Pace>,
    partitions: HashMap<u64, Pace>,
}

impl AdaptiveRate {
    /// Makes a layer in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        let traffic = Traffic::new(Instant::now());
        let state = RateState { traffic, account: None, partitions: HashMap::new() };
        Self { inner: Arc::new(backend), state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, RateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request in its turn. `rows` says how many rows the answer has, beyond the entities that were
    /// known before.
    async fn send<T>(
        &self,
        partition: Option<u64>,
        entities: usize,
        request: impl Future<Output = Result<T>>,
        rows: impl FnOnce(&T) -> usize,
    ) -> Result<T> {
        let entities = amount(entities);
        // The partition first: who waits for it takes no turn of the account from others.
        let turn = self.lock().partition_turn(partition, entities);
        sleep_until(turn).await;
        let turn = self.lock().account_turn();
        sleep_until(turn).await;
        let answer = request.await;
        let mut state = self.lock();
        match &answer {
            Ok(found) => state.succeeded(partition, entities, amount(rows(found))),
            Err(error) if error.is_throttled() => {
                state.refused(partition, error.retry_after());
            }
            Err(_) => {}
        }
        drop(state);
        answer
    }
}

impl RateState {
    fn partition_turn(&mut self, partition: Option<u64>, entities: f64) -> Option<Instant> {
        let pace = self.partitions.get_mut(&partition?)?;
        Some(pace.reserve(entities.max(1.0), Instant::now()))
    }

    fn account_turn(&mut self) -> Option<Instant> {
        Some(self.account.as_mut()?.reserve(1.0, Instant::now()))
    }

    fn succeeded(&mut self, partition: Option<u64>, entities: f64, rows: f64) {
        let now = Instant::now();
        self.traffic.count(partition, entities + rows, now);
        if let Some(account) = &mut self.account {
            account.raise(1.0, now);
        }
        if let Some(pace) = partition.and_then(|partition| self.partitions.get_mut(&partition)) {
            pace.raise(entities + rows, now);
            if rows > 0.0 {
                // Known only now: the next request waits for them, too.
                pace.reserve(rows, now);
            }
        }
    }

    fn refused(&mut self, partition: Option<u64>, wait: Option<Duration>) {
        let now = Instant::now();
        let hot = partition.filter(|partition| {
            self.partitions.contains_key(partition) || self.traffic.is_hot(*partition, now)
        });
        match hot {
            Some(partition) => {
                self.forget_paces(now);
                let rate = self.traffic.partition_entity_rate(partition, now);
                self.partitions
                    .entry(partition)
                    .or_insert_with(|| Pace::below(rate, now))
                    .lower(wait, now);
            }
            None => {
                let rate = self.traffic.request_rate(now);
                self.account.get_or_insert_with(|| Pace::below(rate, now)).lower(wait, now);
            }
        }
    }

    fn forget_paces(&mut self, now: Instant) {
        if self.partitions.len() >= MANY_PACES {
            self.partitions.retain(|_, pace| !pace.is_forgotten(now));
        }
    }
}

async fn sleep_until(turn: Option<Instant>) {
    let Some(turn) = turn else { return };
    let wait = turn.saturating_duration_since(Instant::now());
    if !wait.is_zero() {
        timers::sleep(wait).await;
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for AdaptiveRate {
    forward_to_inner!(origin);
    forward_to_inner!(store);

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        let partition = Some(partition_of_read(&request));
        Box::pin(self.send(partition, 1, self.inner.read(request), |_| 0))
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        let partition = partition_of_scan(&request);
        Box::pin(self.send(partition, 0, self.inner.scan(request), |page| page.rows.len()))
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        let partition = partition_of_batch(batch);
        Box::pin(self.send(partition, batch.len(), self.inner.apply(batch), |_| 0))
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        Box::pin(self.send(None, 0, self.inner.tables(request), |_| 0))
    }
}
