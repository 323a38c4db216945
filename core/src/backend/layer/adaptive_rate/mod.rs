//! A layer that sends requests as fast as the store accepts them, and slows down when the store refuses some as too
//! busy.

mod counted;
mod pace;
mod traffic;
mod window;

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use self::{counted::Counted, pace::Pace, traffic::Traffic, window::Window};
use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::{
            forward::forward_to_inner,
            partition::{count_to_f64, partition_of_batch, partition_of_read, partition_of_scan},
        },
    },
    batch::{Batch, Written},
    error::Result,
    row::Row,
    timers,
};

/// The number of paces from which on the layer looks for unused ones to drop.
const MANY_PACES: usize = 1_024;

/// The maximum number of requests in flight for all loads of a client, including requests that wait for hot partitions.
const MOST_PLACES: usize = 2_048;

/// A layer that sends as fast as the store takes.
///
/// It sends every request at once until the store answers that it is too busy. From then on it keeps a pace
/// for what was refused: for a partition that gets far more than the others, or for the account. A refusal
/// lowers the pace to nine tenths, and each second in which it is used up raises it by 2 %, and by more if nothing is
/// refused for long. Requests wait for
/// their turn in the order in which they came. Those of a partition with a pace of its own hold back no
/// others.
///
/// The layer also learns how many requests at a time are welcome. A client that was built with
/// `ClientBuilder::adaptive_rate` lets its bulk writes, its reads of many
/// points and its workers grow to that number.
///
/// The layer repeats no request: put [`Retry`](super::Retry) around it, as
/// `ClientBuilder::adaptive_rate` does.
///
/// ```
/// use entable_core::{RetryPolicy, backend::{Memory, layer::{AdaptiveRate, Retry}}};
///
/// let store = AdaptiveRate::around(Memory::new());
/// let store = Retry::around(store, RetryPolicy::default());
/// # let _ = store;
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
    window: Window,
    /// The number of requests that were sent or wait for a turn of the account.
    in_flight: usize,
    /// The number of requests that wait for a turn of their own partition.
    waiting: usize,
    /// The number of loads that share the window.
    loads: usize,
}

impl AdaptiveRate {
    /// Makes a layer in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        let traffic = Traffic::new(Instant::now());
        let state = RateState {
            traffic,
            account: None,
            partitions: HashMap::new(),
            window: Window::new(),
            in_flight: 0,
            waiting: 0,
            loads: 0,
        };
        Self { inner: Arc::new(backend), state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, RateState> {
        lock(&self.state)
    }

    /// Counts a load, which writes or reads many entities, among those that share the window. The load ends when the
    /// result is dropped.
    #[doc(hidden)]
    pub fn share_window(&self) -> SharedWindow {
        SharedWindow { load: Counted::new(&self.state, |state| &mut state.loads) }
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
        let entities = count_to_f64(entities);
        // The partition first: who waits for it takes no turn of the account from others.
        let turn = self.lock().partition_turn(partition, entities);
        if turn.is_some() {
            let _waiting = Counted::new(&self.state, |state| &mut state.waiting);
            sleep_until(turn).await;
        }
        let in_flight = Counted::new(&self.state, |state| &mut state.in_flight);
        let came = Instant::now();
        let turn = self.lock().account_turn();
        sleep_until(turn).await;
        let sent = Instant::now();
        let answer = request.await;
        let mut state = self.lock();
        match &answer {
            Ok(found) => {
                state.succeeded(partition, entities, count_to_f64(rows(found)));
                state.note_answer(came, sent);
            }
            Err(error) if error.is_throttled() => {
                state.refused(partition, error.retry_after());
            }
            Err(_) => {}
        }
        drop(state);
        drop(in_flight);
        answer
    }
}

/// The window of a client, which one load shares with others.
#[derive(Debug)]
pub struct SharedWindow {
    load: Counted,
}

impl SharedWindow {
    /// Returns how many requests this load may have in flight: its part of the window. At least 1.
    pub fn part(&self) -> usize {
        let state = lock(self.load.state());
        (state.places() / state.loads.max(1)).max(1)
    }
}

fn lock(state: &Mutex<RateState>) -> MutexGuard<'_, RateState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RateState {
    fn partition_turn(&mut self, partition: Option<u64>, entities: f64) -> Option<Instant> {
        let pace = self.partitions.get_mut(&partition?)?;
        Some(pace.reserve(entities.max(1.0), Instant::now()))
    }

    fn account_turn(&mut self) -> Option<Instant> {
        Some(self.account.as_mut()?.reserve(1.0, Instant::now()))
    }

    /// Returns how many requests all loads may have in flight. A request that waits for its hot partition does not
    /// count.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window has from 1 to 1,024 places"
    )]
    fn places(&self) -> usize {
        (self.window.size() as usize).saturating_add(self.waiting).min(MOST_PLACES)
    }

    fn note_answer(&mut self, came: Instant, sent: Instant) {
        let waited = sent.saturating_duration_since(came);
        self.window.note_answer(waited, sent.elapsed(), count_to_f64(self.in_flight));
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
                    .or_insert_with(|| Pace::starting_below(rate, now))
                    .lower(wait, now);
            }
            None => {
                self.window.shrink(now);
                let rate = self.traffic.request_rate(now);
                self.account
                    .get_or_insert_with(|| Pace::starting_below(rate, now))
                    .lower(wait, now);
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
