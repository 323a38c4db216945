//! Tests many tasks on one store: writers beside writers, readers beside writers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use entable::{
    Batch, Condition, Operation, ValueRef,
    backend::{Backend, Embedded, EmbeddedOptions},
};

use crate::{count, create, fill, insert, read, row, scratch};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_write_at_once() {
    let (_directory, path) = scratch();
    let store = Arc::new(Embedded::open(&path).unwrap());
    create(&store, "Staff").await;
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..20 {
                    let key = format!("{task}_{number}");
                    insert(&store, "Staff", row("p", &key, number)).await.unwrap();
                    assert!(read(&store, "Staff", &key).await.unwrap().is_some());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(count(&store, "Staff").await, 64 * 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_takes_no_other_with_it() {
    let (_directory, path) = scratch();
    let store = Arc::new(Embedded::open(&path).unwrap());
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "taken", 0)).await.unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut batch = Batch::new("Staff");
                batch.push(Operation::insert(row("p", &format!("{task}"), task))).unwrap();
                if task % 2 == 0 {
                    batch.push(Operation::insert(row("p", "taken", task))).unwrap();
                }
                (task, store.apply(&batch).await)
            })
        })
        .collect();
    for task in tasks {
        let (task, result) = task.await.unwrap();
        match result {
            Ok(_) => assert_eq!(task % 2, 1),
            Err(error) => {
                assert!(error.is_conflict() && error.failed_index() == Some(1), "{error:?}");
            }
        }
        let there = read(&store, "Staff", &task.to_string()).await.unwrap().is_some();
        assert_eq!(there, task % 2 == 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writer_wins_each_version() {
    let (_directory, path) = scratch();
    let store = Arc::new(Embedded::open(&path).unwrap());
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 0)).await.unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    loop {
                        let old = read(&store, "Staff", "r").await.unwrap().unwrap();
                        let Some(ValueRef::Int64(number)) = old.get("Number").unwrap() else {
                            panic!("no number")
                        };
                        let version = Condition::Match(old.etag().unwrap());
                        let change = Operation::replace(row("p", "r", number + 1), version);
                        let batch = Batch::single("Staff", change).unwrap();
                        match store.apply(&batch).await {
                            Ok(_) => break,
                            Err(error) => assert!(error.is_precondition_failed(), "{error:?}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let row = read(&store, "Staff", "r").await.unwrap().unwrap();
    assert_eq!(row.get("Number").unwrap(), Some(ValueRef::Int64(160)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_a_writer_do_not_wait_for_each_other() {
    let (_directory, path) = scratch();
    let store = Arc::new(Embedded::open(&path).unwrap());
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 5_000).await;
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicI64::new(0));
    let writer = {
        let (store, stop, written) = (store.clone(), stop.clone(), written.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let number = written.load(Ordering::Relaxed);
                insert(&store, "Staff", row("q", &number.to_string(), number)).await.unwrap();
                written.store(number + 1, Ordering::Relaxed);
            }
        })
    };
    // Counts scans during which a write ended: how many there are in a time is the machine's matter.
    let start = Instant::now();
    let mut shared = 0;
    while shared < 5 {
        let before = written.load(Ordering::Relaxed);
        assert!(read(&store, "Staff", "00000042").await.unwrap().is_some());
        assert!(count(&store, "Staff").await >= 5_000);
        shared += u32::from(written.load(Ordering::Relaxed) > before);
        assert!(start.elapsed() < Duration::from_secs(60), "writes in {shared} scans only");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    assert!(written.load(Ordering::Relaxed) >= 5);
}

#[tokio::test]
async fn a_long_scan_lets_others_run() {
    let (_directory, path) = scratch();
    let store = Arc::new(Embedded::open(&path).unwrap());
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 20_000).await;
    let scan = {
        let store = store.clone();
        tokio::spawn(async move { count(&store, "Staff").await })
    };
    // One thread for both: each turn here is one in which the scan gave way.
    let mut turns = 0;
    while !scan.is_finished() {
        tokio::task::yield_now().await;
        turns += 1;
    }
    assert_eq!(scan.await.unwrap(), 20_000);
    assert!(turns > 20, "the scan gave way {turns} times");
}

#[tokio::test]
async fn a_write_that_is_given_up_is_whole_or_not_there() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    for number in 0..50 {
        let mut batch = Batch::new("Staff");
        for part in 0..10 {
            let key = format!("{number}_{part}");
            batch.push(Operation::insert(row("p", &key, number))).unwrap();
        }
        let time = Duration::from_micros(u64::try_from(number).unwrap() * 20);
        drop(tokio::time::timeout(time, store.apply(&batch)).await);
    }
    store.flush().await.unwrap();
    assert_eq!(count(&store, "Staff").await % 10, 0);
}

/// A store whose commits to disk are counted and take at least `sync`.
async fn slow_store(sync: Duration) -> (tempfile::TempDir, Arc<Embedded>, Arc<AtomicUsize>) {
    let (directory, path) = scratch();
    let syncs = Arc::new(AtomicUsize::new(0));
    let options = EmbeddedOptions::new().simulated_sync_delay(sync).count_syncs_into(syncs.clone());
    let store = Arc::new(options.open(&path).unwrap());
    create(&store, "Staff").await;
    (directory, store, syncs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_write_in_turns_share_one_sync_a_round() {
    const ROUNDS: i64 = 10;
    // The wait is at most half a sync: so long a sync gives a loaded machine time to run all tasks.
    let (_directory, store, syncs) = slow_store(Duration::from_millis(160)).await;
    let first = {
        let store = store.clone();
        tokio::spawn(async move { insert(&store, "Staff", row("p", "first", 0)).await.unwrap() })
    };
    // While that row goes to disk, all tasks queue their first rows, which share the next commit.
    tokio::time::sleep(Duration::from_millis(40)).await;
    let tasks = [1, 2, 3, 4].map(|task: u64| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..ROUNDS {
                let key = format!("{task}_{number}");
                insert(&store, "Staff", row("p", &key, number)).await.unwrap();
                // No two tasks are back at one time: without the wait, the first is alone.
                tokio::time::sleep(Duration::from_millis(task * 10)).await;
            }
        })
    });
    first.await.unwrap();
    let before = syncs.load(Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    // A commit that begins as soon as a task is back holds one row, and the rows of the others need
    // another: nineteen syncs. Here a task that the machine did not run in time may miss its round.
    let syncs = syncs.load(Ordering::SeqCst) - before;
    assert!((9..=15).contains(&syncs), "{syncs} syncs for {ROUNDS} rounds");
    assert_eq!(count(&store, "Staff").await, 1 + 4 * ROUNDS as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_task_alone_waits_for_nobody() {
    const SYNC: Duration = Duration::from_millis(200);
    let (_directory, store, syncs) = slow_store(SYNC).await;
    let before = syncs.load(Ordering::SeqCst);
    let mut times = Vec::new();
    for number in 0..6 {
        let started = Instant::now();
        insert(&store, "Staff", row("p", &number.to_string(), number)).await.unwrap();
        times.push(started.elapsed());
    }
    assert_eq!(syncs.load(Ordering::SeqCst) - before, 6);
    // A commit that waits for others takes half a sync more, each time but the first. The quickest of
    // five is under that even where the machine is busy with something else now and then.
    let quickest = times[1..].iter().min().unwrap();
    assert!(*quickest < SYNC + SYNC / 2, "{times:?}");
}
