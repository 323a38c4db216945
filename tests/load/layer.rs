//! Tests that a client sends as fast as a simulated account takes, and hardly more. All time is virtual.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use entable::{
    Batch, Operation, Row,
    backend::{
        Backend, Memory, TableRequest,
        layer::{AdaptiveRate, Retry, RetryPolicy, SimulatedAccount},
    },
};
use tokio::time::Instant;

use crate::world::Span;

/// A fifth of a partition's limit and a tenth of the account's, for the sake of the test's own time.
const PARTITION: u32 = 400;
const ACCOUNT: u32 = 2_000;

/// The time in which a pace is found.
const WARMUP: Duration = Duration::from_secs(10);

struct Service {
    account: SimulatedAccount,
    store: Arc<dyn Backend>,
}

async fn service(seed: u64) -> Service {
    let account = SimulatedAccount::around(Memory::new(), seed);
    let account =
        account.entities_per_second_of_partition(PARTITION).requests_per_second_of_account(ACCOUNT);
    account.tables(TableRequest::Create("Staff")).await.unwrap();
    let policy = RetryPolicy::new().attempts(30).budget(1_000_000);
    let store = Retry::around(AdaptiveRate::around(account.clone()), policy);
    Service { account, store: Arc::new(store) }
}

fn batch(partition: &str, entities: usize) -> Batch {
    let mut batch = Batch::new("Staff");
    for key in 0..entities {
        let row = Row::build(partition, &format!("{key:03}")).finish().unwrap();
        batch.push(Operation::insert_or_replace(row)).unwrap();
    }
    batch
}

/// What one load has written, and how long its slowest write took.
#[derive(Debug, Default)]
struct Done {
    writes: AtomicU64,
    slowest_millis: AtomicU64,
}

/// Writes for `time` from `tasks` tasks; each task takes one partition after the other.
async fn load(
    store: &Arc<dyn Backend>,
    tasks: usize,
    time: Duration,
    partitions: impl Fn(usize, usize) -> Batch + Send + Sync + 'static,
) -> Arc<Done> {
    let (end, partitions, done) = (Instant::now() + time, Arc::new(partitions), Arc::default());
    let tasks = (0..tasks).map(|task| {
        let (store, partitions) = (store.clone(), partitions.clone());
        let done: Arc<Done> = Arc::clone(&done);
        tokio::spawn(async move {
            for turn in 0.. {
                let began = Instant::now();
                if began >= end {
                    break;
                }
                store.apply(&partitions(task, turn)).await.unwrap();
                done.writes.fetch_add(1, Ordering::Relaxed);
                let took = began.elapsed().as_millis() as u64;
                done.slowest_millis.fetch_max(took, Ordering::Relaxed);
            }
        })
    });
    futures_util::future::join_all(tasks).await.into_iter().for_each(|task| task.unwrap());
    done
}

fn spread(task: usize, turn: usize) -> Batch {
    batch(&format!("p{}", (task * 37 + turn) % 200), 1)
}

#[tokio::test(start_paused = true)]
async fn a_load_over_many_partitions_gets_nine_tenths_of_the_account() {
    let service = service(1).await;
    let time = Duration::from_secs(60);
    load(&service.store, 48, WARMUP, spread).await;
    let span = Span::of(&service.account);
    let done = load(&service.store, 48, time, spread).await;
    let throttled = span.throttled_share();
    let share = done.writes.load(Ordering::Relaxed) as f64 / 60.0 / f64::from(ACCOUNT);
    assert!(share >= 0.9, "{share}");
    assert!(throttled < 0.01, "{throttled}");
}

#[tokio::test(start_paused = true)]
async fn transactions_over_few_partitions_get_nine_tenths_of_theirs() {
    let service = service(2).await;
    let time = Duration::from_secs(60);
    let few = |task, _| batch(&format!("p{}", task % 4), 50);
    load(&service.store, 16, WARMUP, few).await;
    let span = Span::of(&service.account);
    let done = load(&service.store, 16, time, few).await;
    let throttled = span.throttled_share();
    let entities = done.writes.load(Ordering::Relaxed) as f64 * 50.0;
    let share = entities / 60.0 / f64::from(PARTITION * 4);
    assert!(share >= 0.9, "{share}");
    // One refusal in each time of growth is half a percent of so few requests.
    assert!(throttled < 0.02, "{throttled}");
}

#[tokio::test(start_paused = true)]
async fn a_hot_partition_gets_its_limit_and_others_do_not_suffer() {
    let service = service(3).await;
    let time = Duration::from_secs(60);
    let calm = |task: usize, turn: usize| batch(&format!("calm{}", (task * 13 + turn) % 100), 1);
    let alone = load(&service.store, 4, time, calm).await;
    load(&service.store, 24, WARMUP, |_, _| batch("hot", 1)).await;
    let (hot, others) = tokio::join!(
        load(&service.store, 24, time, |_, _| batch("hot", 1)),
        load(&service.store, 4, time, calm),
    );
    let share = hot.writes.load(Ordering::Relaxed) as f64 / 60.0 / f64::from(PARTITION);
    assert!(share >= 0.9, "{share}");
    let written = |done: &Done| done.writes.load(Ordering::Relaxed) as f64;
    assert!(written(&others) >= 0.97 * written(&alone), "{others:?} beside {alone:?}");
}

#[tokio::test(start_paused = true)]
async fn after_a_drop_to_a_tenth_it_is_steady_within_ten_seconds() {
    let service = service(4).await;
    load(&service.store, 48, Duration::from_secs(10), spread).await;
    service.account.limit_to_share(0.1);
    load(&service.store, 48, Duration::from_secs(10), spread).await;
    let span = Span::of(&service.account);
    let done = load(&service.store, 48, Duration::from_secs(60), spread).await;
    let throttled = span.throttled_share();
    let share = done.writes.load(Ordering::Relaxed) as f64 / 60.0 / f64::from(ACCOUNT) * 10.0;
    assert!(share >= 0.9, "{share}");
    assert!(throttled < 0.02, "{throttled}");
}

/// Before the first refusal no request waits.
#[tokio::test(start_paused = true)]
async fn nothing_waits_where_nothing_is_refused() {
    let five = Duration::from_millis(5);
    let account = SimulatedAccount::around(Memory::new(), 5).latency(five, five);
    account.tables(TableRequest::Create("Staff")).await.unwrap();
    let store: Arc<dyn Backend> = Arc::new(AdaptiveRate::around(account));
    let done = load(&store, 32, Duration::from_secs(2), spread).await;
    assert_eq!(done.slowest_millis.load(Ordering::Relaxed), 5);
    assert_eq!(done.writes.load(Ordering::Relaxed), 32 * 400);
}
