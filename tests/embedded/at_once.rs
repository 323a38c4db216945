//! Tests which writes of a relaxed store their caller's thread applies, and that jobs keep their order.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

use entable::{
    Batch, Clock, Condition, Operation, Row, Ticks, ValueRef,
    backend::{Backend, Durability, Embedded, EmbeddedOptions, TableRequest},
    prelude::*,
};
use futures_util::FutureExt;
use tokio::join;

use crate::{count, create, insert, read, row, scratch};

/// No commit is due for the disk in a test.
const RELAXED: Durability = Durability::Relaxed { delay: Duration::from_secs(3600) };

/// A clock that does not move, and remembers who looked at it last: whoever applied a batch.
#[derive(Debug, Default)]
struct WatchedClock(Mutex<Option<ThreadId>>);

impl Clock for WatchedClock {
    fn now(&self) -> Ticks {
        *self.0.lock().unwrap() = Some(thread::current().id());
        Ticks::UNIX_EPOCH
    }
}

impl WatchedClock {
    fn was_seen_here(&self) -> bool {
        self.0.lock().unwrap().take() == Some(thread::current().id())
    }
}

async fn open(path: &Path, durability: Durability) -> (Embedded, Arc<WatchedClock>) {
    let clock = Arc::new(WatchedClock::default());
    let options = EmbeddedOptions::new().durability(durability).clock(clock.clone());
    let store = options.open(path).unwrap();
    create(&store, "Staff").await;
    // With an unsynced write, no maintenance is due. The answer to the second write says that the writer thread waits.
    store.apply(&batch(0, 0)).await.unwrap();
    store.apply(&batch(0, 8)).await.unwrap();
    (store, clock)
}

/// Returns a batch that writes the row (p, r) last, after as many other rows as `others`.
fn batch(number: i64, others: i64) -> Batch {
    let mut batch = Batch::new("Staff");
    for other in 0..others {
        let row = row("p", &format!("other{other}"), number);
        batch.push(Operation::insert_or_replace(row)).unwrap();
    }
    batch.push(Operation::insert_or_replace(row("p", "r", number))).unwrap();
    batch
}

async fn number(store: &Embedded) -> i64 {
    let row = read(store, "Staff", "r").await.unwrap().unwrap();
    match row.get("Number").unwrap() {
        Some(ValueRef::Int64(number)) => number,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_small_write_of_one_task_is_applied_on_its_thread() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    for number in 0..10 {
        store.apply(&batch(number, 7)).await.unwrap();
        assert!(clock.was_seen_here(), "write {number}");
        store.apply(&batch(number, 8)).await.unwrap();
        assert!(!clock.was_seen_here(), "a large batch");
    }
    let missing = Operation::delete("p", "missing", Condition::Any).unwrap();
    let refused = store.apply(&Batch::single("Staff", missing).unwrap()).await.unwrap_err();
    assert!(refused.is_not_found() && clock.was_seen_here(), "{refused:?}");
}

/// Inserts read no stored rows, so only their bytes count.
#[tokio::test]
async fn inserts_of_few_bytes_are_applied_on_their_callers_thread() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    for (bytes, is_at_once) in [(10, true), (250, true), (1_000, false)] {
        let mut batch = Batch::new("Staff");
        for number in 0..100 {
            let row = Row::build(&format!("inserts of {bytes}"), &format!("{number}"));
            let text = "x".repeat(bytes);
            let row = row.with("Text", ValueRef::String(&text)).unwrap().finish().unwrap();
            batch.push(Operation::insert(row)).unwrap();
        }
        store.apply(&batch).await.unwrap();
        assert_eq!(clock.was_seen_here(), is_at_once, "{bytes}");
    }
}

#[tokio::test]
async fn a_write_that_is_synced_is_not_applied_on_its_thread() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, Durability::Sync).await;
    store.apply(&batch(1, 0)).await.unwrap();
    assert!(!clock.was_seen_here());
}

#[tokio::test]
async fn writes_of_several_tasks_are_applied_together() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    let insert = |key: &'static str| insert(&store, "Staff", row("p", key, 1));
    let (first, second, third) = join!(insert("a"), insert("b"), insert("c"));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert!(!clock.was_seen_here());
}

#[tokio::test]
async fn jobs_keep_the_order_in_which_they_were_begun() {
    let (_directory, path) = scratch();
    let (store, _) = open(&path, RELAXED).await;
    for others in [0, 20] {
        for (first, second) in [(0, 0), (others, 0), (0, others)] {
            let (first, second) = (batch(1, first), batch(2, second));
            let (first, second) = join!(store.apply(&first), store.apply(&second));
            assert!(first.is_ok() && second.is_ok());
            assert_eq!(number(&store).await, 2);
        }
    }
    let (write, delete) = (batch(3, 0), TableRequest::Delete("Staff"));
    let (written, deleted) = join!(store.apply(&write), store.tables(delete));
    assert!(written.is_ok() && deleted.is_ok());
    create(&store, "Staff").await;
    let (written, closed) = join!(store.apply(&write), store.close());
    assert!(written.is_ok() && closed.is_ok());
    drop(store);
    let store = Embedded::open(&path).unwrap();
    assert_eq!(number(&store).await, 3);
}

#[tokio::test]
async fn a_write_that_is_given_up_at_once_changes_nothing() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    assert!(store.apply(&batch(1, 0)).now_or_never().is_none(), "others may run first");
    assert_eq!(number(&store).await, 0);
    store.apply(&batch(2, 0)).await.unwrap();
    assert!(clock.was_seen_here(), "the other write is in the way");
    assert_eq!(number(&store).await, 2);
}

#[tokio::test]
async fn a_task_that_only_writes_lets_others_run() {
    let (_directory, path) = scratch();
    let (store, _) = open(&path, RELAXED).await;
    let other = tokio::spawn(async {});
    while !other.is_finished() {
        store.apply(&batch(1, 0)).await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_was_closed_refuses_writes() {
    let (_directory, path) = scratch();
    let (store, _) = open(&path, RELAXED).await;
    store.apply(&batch(1, 0)).await.unwrap();
    store.close().await.unwrap();
    assert!(store.apply(&batch(2, 0)).await.unwrap_err().is_backend());
    let store = Embedded::open(&path).unwrap();
    assert_eq!(number(&store).await, 1);
}

#[tokio::test]
async fn whatever_reads_the_store_sees_writes_at_once() {
    let (directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    let before = count(&store, "Staff").await;
    let write = async |number: usize| {
        insert(&store, "Staff", row("p", &format!("row{number}"), 0)).await.unwrap();
        assert!(clock.was_seen_here(), "write {number}");
    };
    write(1).await;
    assert!(read(&store, "Staff", "row1").await.unwrap().is_some());
    write(2).await;
    assert_eq!(count(&store, "Staff").await, before + 2);
    write(3).await;
    let report = store.backup(directory.path().join("backup.db")).await.unwrap();
    assert_eq!(report.rows, before as u64 + 3);
    write(4).await;
    let snapshot = store.snapshot().await.unwrap();
    write(5).await;
    assert_eq!(
        snapshot.backup(&directory.path().join("other.db")).await.unwrap().rows,
        report.rows + 1
    );
    drop(snapshot);
    store.verify().await.unwrap();
    insert(&store, "Staff", row("p", "row6", 0)).await.unwrap();
    drop(store);
    assert_eq!(count(&Embedded::open(&path).unwrap(), "Staff").await, before + 6);
}

/// Returns how many transactions the store has begun, once all of them are on disk: the mark has the newest one's number.
async fn transactions(store: &Embedded, path: &Path) -> u64 {
    store.flush().await.unwrap();
    let mark = fs::read(path.with_extension("db.mark")).unwrap();
    u64::from_le_bytes(mark[24..32].try_into().unwrap())
}

/// Each update reads its row first, and so do most programs. A commit for each read would take most of the time.
#[tokio::test]
async fn a_task_that_reads_before_each_write_needs_few_commits() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    let before = transactions(&store, &path).await;
    // By the writer thread, which then waits.
    store.apply(&batch(0, 8)).await.unwrap();
    for written in 0..200 {
        store.apply(&batch(written, written % 3)).await.unwrap();
        assert!(clock.was_seen_here(), "write {written}");
        assert_eq!(number(&store).await, written);
        assert!(read(&store, "Staff", "missing").await.unwrap().is_none());
    }
    let few = transactions(&store, &path).await - before;
    assert!(few < 10, "{few} transactions for 200 writes");
    for written in 0..20 {
        store.apply(&batch(written, 0)).await.unwrap();
        count(&store, "Staff").await;
    }
    let many = transactions(&store, &path).await - before - few;
    assert!(many >= 20, "{many} transactions, though each scan needs one");
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Employees",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email}", unique)
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

#[tokio::test]
async fn changes_of_index_keys_by_one_task_share_a_commit() {
    let (_directory, path) = scratch();
    let (store, _) = open(&path, RELAXED).await;
    let store = Arc::new(store);
    let staff: Table<Employee> = Client::builder().backend(store.clone()).build().unwrap().table();
    staff.create_if_not_exists().await.unwrap();
    let department = "Sales".to_owned();
    staff.insert(&Employee { department, id: 1, email: "0".to_owned() }).await.unwrap();
    let before = transactions(&store, &path).await;
    for number in 1..=100 {
        let change = |employee: &mut Employee| {
            assert_eq!(employee.email, (number - 1).to_string());
            employee.email = number.to_string();
            Ok(())
        };
        let point = Employee::primary().department("Sales").id(1);
        staff.update(point, change).await.unwrap();
    }
    let transactions = transactions(&store, &path).await - before;
    assert!(transactions < 10, "{transactions} transactions for 100 changes");
    let found = staff.get(Employee::by_email().department("Sales").email("100")).await.unwrap();
    assert_eq!(found.map(|employee| employee.id), Some(1));
}

/// Tasks that only read come back to a snapshot that they share.
#[tokio::test]
async fn tasks_that_only_read_have_the_last_write_committed() {
    let (_directory, path) = scratch();
    let (store, clock) = open(&path, RELAXED).await;
    let transactions_with = async |reads: usize| {
        let before = transactions(&store, &path).await;
        // By the writer thread, which then waits.
        store.apply(&batch(0, 8)).await.unwrap();
        store.apply(&batch(1, 0)).await.unwrap();
        assert!(clock.was_seen_here());
        let read_often = async || {
            for _ in 0..reads {
                assert_eq!(number(&store).await, 1);
                tokio::task::yield_now().await;
            }
        };
        join!(read_often(), read_often(), read_often());
        store.apply(&batch(1, 0)).await.unwrap();
        assert!(clock.was_seen_here());
        transactions(&store, &path).await - before
    };
    let without_readers = transactions_with(0).await;
    assert_eq!(transactions_with(2).await, without_readers, "few reads");
    assert_eq!(transactions_with(100).await, without_readers + 1, "many reads");
}
