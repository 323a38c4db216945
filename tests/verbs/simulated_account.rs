//! Tests the simulated account: what it takes in a second, what a request counts, when it is slow, and that a
//! seed gives the same answers again. All time is virtual.

use std::{sync::Arc, time::Duration};

use entable::{
    Batch, Filter, Operation, Row,
    backend::{
        Backend, Memory, ReadRequest, ScanRequest, TableRequest,
        layer::{AccountFigures, SimulatedAccount},
    },
};
use tokio::time::Instant;

const FIXED: Duration = Duration::from_millis(5);

async fn account() -> SimulatedAccount {
    let account = SimulatedAccount::around(Memory::new(), 7).latency(FIXED, FIXED);
    account.tables(TableRequest::Create("Staff")).await.unwrap();
    account
}

fn row(partition: &str, key: usize) -> Row {
    Row::build(partition, &format!("{key:06}")).finish().unwrap()
}

fn batch(partition: &str, keys: std::ops::Range<usize>) -> Batch {
    let mut batch = Batch::new("Staff");
    for key in keys {
        batch.push(Operation::insert_or_replace(row(partition, key))).unwrap();
    }
    batch
}

/// Writes from `tasks` tasks for `time`, each to the partition that `partition` names for it, and returns how
/// many requests were answered with success.
async fn load(
    account: &SimulatedAccount,
    tasks: usize,
    time: Duration,
    make: impl Fn(usize) -> Batch + Send + Sync + 'static,
) -> usize {
    let (end, make) = (Instant::now() + time, Arc::new(make));
    let tasks = (0..tasks).map(|task| {
        let (account, make) = (account.clone(), make.clone());
        tokio::spawn(async move {
            let mut done = 0;
            while Instant::now() < end {
                done += usize::from(account.apply(&make(task)).await.is_ok());
            }
            done
        })
    });
    futures_util::future::join_all(tasks).await.into_iter().map(Result::unwrap).sum()
}

fn assert_near(found: usize, expected: f64, what: &str) {
    let share = found as f64 / expected;
    assert!((0.98..1.02).contains(&share), "{what}: {found}, expected {expected}");
}

/// 10 seconds and the burst of a tenth of a second: 10.1 seconds of the limit.
#[tokio::test(start_paused = true)]
async fn a_partition_takes_2000_entities_a_second_one_by_one_or_by_100() {
    let one = load(&account().await, 40, 10 * Duration::from_secs(1), |_| batch("p", 0..1)).await;
    assert_near(one, 2_000.0 * 10.1, "singles");
    let hundred = load(&account().await, 4, Duration::from_secs(10), |_| batch("p", 0..100)).await;
    assert_near(hundred * 100, 2_000.0 * 10.1, "entities of transactions");
}

#[tokio::test(start_paused = true)]
async fn the_account_counts_a_transaction_as_one_request() {
    let account = account().await.requests_per_second_of_account(500);
    let time = Duration::from_secs(4);
    let written = load(&account, 100, time, |task| batch(&format!("p{task}"), 0..3)).await;
    assert_near(written, 500.0 * 4.1, "transactions");
    let figures = account.figures();
    assert_eq!(figures.entities, written as u64 * 3);
    assert!(figures.throttled > 10_000 && figures.moved == 0, "{figures:?}");
}

#[tokio::test(start_paused = true)]
async fn refused_requests_change_nothing_and_say_how_long_to_wait_if_told_to() {
    let account =
        account().await.entities_per_second_of_partition(20).retry_after(Duration::from_secs(3));
    account.apply(&batch("p", 0..3)).await.unwrap();
    let error = account.apply(&batch("p", 3..4)).await.unwrap_err();
    assert!(error.is_throttled() && error.retry_after() == Some(Duration::from_secs(3)), "{error}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = |key| ReadRequest { table: "Staff", partition_key: "p", row_key: key, select: None };
    assert!(account.read(read("000003")).await.unwrap().is_none());
    for _ in 0..2 {
        assert!(account.read(read("000001")).await.unwrap().is_some());
    }
    assert!(account.read(read("000001")).await.unwrap_err().is_throttled(), "reads count");
}

/// The rows of a page are known after it was read: the requests after it pay for them.
#[tokio::test(start_paused = true)]
async fn a_page_counts_as_its_rows_for_their_partitions() {
    let account = account().await.entities_per_second_of_partition(100);
    for partition in ["a", "b"] {
        account.apply(&batch(partition, 0..50)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let everything = Filter::Constant(true);
    let scan = ScanRequest {
        table: "Staff",
        filter: &everything,
        select: None,
        top: Some(80),
        from: None,
    };
    assert_eq!(account.scan(scan).await.unwrap().rows.len(), 80);
    assert!(account.apply(&batch("a", 0..1)).await.unwrap_err().is_throttled());
    // 50 rows of `a` fill a bucket of 10 for 400 ms, 30 rows of `b` for 200 ms.
    tokio::time::sleep(Duration::from_millis(250)).await;
    account.apply(&batch("b", 0..1)).await.unwrap();
    assert!(account.apply(&batch("a", 0..1)).await.unwrap_err().is_throttled());
    tokio::time::sleep(Duration::from_millis(200)).await;
    account.apply(&batch("a", 0..1)).await.unwrap();
    account.apply(&batch("c", 0..1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_limit_holds_from_now_on() {
    let account = account().await;
    let second = Duration::from_secs(10);
    account.limit_to_share(0.1);
    let few = load(&account, 40, second, |_| batch("p", 0..1)).await;
    account.limit_to_share(1.0);
    let many = load(&account, 40, second, |_| batch("p", 0..1)).await;
    assert_near(few, 200.0 * 10.1, "a tenth");
    assert_near(many, 2_000.0 * 10.1, "all of it");
}

#[tokio::test(start_paused = true)]
async fn partitions_move_and_come_back() {
    let every = Duration::from_secs(10);
    let time = Duration::from_millis(100);
    let account = account().await.latency(time, time).moves(every, Duration::from_secs(1));
    load(&account, 64, 20 * every, |task| batch(&format!("p{task}"), 0..1)).await;
    let AccountFigures { requests, moved, throttled, .. } = account.figures();
    assert_eq!(throttled, 0);
    // A sixteenth of the requests of one second in ten, in 19 of 20 turns.
    let expected = requests as f64 / 16.0 / 10.0 * 19.0 / 20.0;
    assert!((0.6..1.5).contains(&(moved as f64 / expected)), "{moved} of {requests}, {expected}");
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_answers_again() {
    let run = async |seed| {
        let account =
            SimulatedAccount::around(Memory::new(), seed).entities_per_second_of_partition(300);
        let account = account.moves(Duration::from_millis(700), Duration::from_millis(100));
        account.tables(TableRequest::Create("Staff")).await.unwrap();
        let (began, mut answers) = (Instant::now(), Vec::new());
        for key in 0..400 {
            let answer = account.apply(&batch(&format!("p{}", key % 3), key..key + 1)).await;
            answers.push((answer.is_ok(), began.elapsed()));
        }
        (answers, account.figures())
    };
    let (first, again, other) = (run(1).await, run(1).await, run(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let slow = |answers: &[(bool, Duration)]| {
        answers.windows(2).filter(|pair| pair[1].1 - pair[0].1 > 4 * FIXED).count()
    };
    assert!(slow(&first.0) > 2, "the tail is there: {}", slow(&first.0));
}
