//! An account that is simulated over a store in memory, and a client that adapts to it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use entable::{
    backend::{
        Backend as _, Memory, TableRequest,
        layer::{AccountFigures, SimulatedAccount},
    },
    prelude::*,
};
use tokio::time::Instant;

/// A small entity. Its partition is one of many, and its rows are spread over them in turn.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Readings", partition_key = "sensor_{sensor:05}", row_key = "{number:010}")]
pub struct Reading {
    pub sensor: u32,
    pub number: u64,
    pub value: i32,
}

/// Limits of an account, in a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) requests: u32,
    pub(crate) entities_of_partition: u32,
}

/// An account with a client that adapts its rate to it.
pub(crate) struct World {
    pub(crate) account: SimulatedAccount,
    pub(crate) client: Client,
    pub(crate) readings: Table<Reading>,
}

impl World {
    pub(crate) async fn new(seed: u64, limits: Limits) -> Self {
        let account = SimulatedAccount::around(Memory::new(), seed)
            .requests_per_second_of_account(limits.requests)
            .entities_per_second_of_partition(limits.entities_of_partition);
        Self::over(account).await
    }

    pub(crate) async fn over(account: SimulatedAccount) -> Self {
        account.tables(TableRequest::Create("Readings")).await.unwrap();
        let retry = RetryPolicy::new().attempts(30).budget(1_000_000);
        let client = Client::builder().backend(account.clone()).retry(retry).adaptive_rate(true);
        let client = client.build().unwrap();
        let readings = client.table::<Reading>();
        Self { account, client, readings }
    }

    /// Begins to measure.
    pub(crate) fn span(&self) -> Span {
        Span::of(&self.account)
    }
}

/// The requests and the time of an account from a moment on.
pub(crate) struct Span {
    account: SimulatedAccount,
    before: AccountFigures,
    began: Instant,
}

impl Span {
    pub(crate) fn of(account: &SimulatedAccount) -> Self {
        Self { account: account.clone(), before: account.figures(), began: Instant::now() }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.account.figures().requests - self.before.requests
    }

    pub(crate) fn entities(&self) -> u64 {
        self.account.figures().entities - self.before.entities
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Returns the share of the requests that were throttled.
    pub(crate) fn throttled_share(&self) -> f64 {
        let throttled = self.account.figures().throttled - self.before.throttled;
        throttled as f64 / self.requests() as f64
    }
}

/// Returns readings that go round the sensors in blocks: `block` readings of each sensor in turn.
pub(crate) fn readings(
    count: u64,
    sensors: u64,
    block: u64,
) -> impl Iterator<Item = Reading> + Send {
    (0..count).map(move |at| {
        let (round, within) = (at / (sensors * block), at % (sensors * block));
        let (sensor, number) = ((within / block) as u32, round * block + within % block);
        Reading { sensor, number, value: at as i32 }
    })
}

/// Inserts readings from many tasks. Each task sends one insert at a time.
pub(crate) async fn insert_from_tasks(
    table: &Table<Reading>,
    tasks: usize,
    next: impl Fn(usize) -> Option<Reading> + Send + Sync + 'static,
) -> usize {
    let (written, next) = (Arc::new(AtomicUsize::new(0)), Arc::new(next));
    let started = Arc::new(AtomicUsize::new(0));
    let tasks = (0..tasks).map(|_| {
        let (table, written, next) = (table.clone(), written.clone(), next.clone());
        let started = started.clone();
        tokio::spawn(async move {
            while let Some(reading) = next(started.fetch_add(1, Ordering::Relaxed)) {
                table.insert(&reading).await.unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    futures_util::future::join_all(tasks).await.into_iter().for_each(|task| task.unwrap());
    written.load(Ordering::Relaxed)
}
