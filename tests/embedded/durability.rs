//! Tests when writes are on disk. A copy of the open file stands for the state after a crash.

use std::{fs, path::Path, time::Duration};

use entable::backend::{Durability, Embedded};

use crate::{copy_as_crashed, count, create, insert, row, scratch};

/// Returns the rows that a store which crashed now would hold.
async fn after_a_crash(path: &Path) -> usize {
    let copy = path.with_extension("copy");
    copy_as_crashed(path, &copy);
    let store = Embedded::open(&copy).unwrap();
    let rows = count(&store, "Staff").await;
    drop(store);
    fs::remove_file(copy).unwrap();
    rows
}

fn relaxed(path: &Path, delay: Duration) -> Embedded {
    Embedded::options().durability(Durability::Relaxed { delay }).open(path).unwrap()
}

#[tokio::test]
async fn a_sync_write_is_on_disk_when_it_is_acknowledged() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    // The first writes are in the engine's file, and the others in the journal.
    for number in 0..24 {
        insert(&store, "Staff", row("p", &number.to_string(), number)).await.unwrap();
        assert_eq!(after_a_crash(&path).await, usize::try_from(number).unwrap() + 1);
    }
}

#[tokio::test]
async fn a_relaxed_write_is_on_disk_after_a_flush() {
    let (_directory, path) = scratch();
    let store = relaxed(&path, Duration::from_secs(3600));
    create(&store, "Staff").await;
    for number in 0..20 {
        insert(&store, "Staff", row("p", &number.to_string(), number)).await.unwrap();
    }
    assert_eq!(count(&store, "Staff").await, 20);
    assert_eq!(after_a_crash(&path).await, 0);
    store.flush().await.unwrap();
    assert_eq!(after_a_crash(&path).await, 20);
}

#[tokio::test]
async fn a_relaxed_write_is_on_disk_after_its_delay() {
    let (_directory, path) = scratch();
    let store = relaxed(&path, Duration::from_millis(100));
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(after_a_crash(&path).await, 1);
}

/// The thread that syncs waits without limit then. Only the write can wake it.
#[tokio::test]
async fn a_relaxed_write_to_a_store_at_rest_is_on_disk_after_its_delay() {
    let (_directory, path) = scratch();
    let store = relaxed(&path, Duration::from_millis(100));
    create(&store, "Staff").await;
    // Longer than the idle time after which the store does its last maintenance.
    tokio::time::sleep(Duration::from_millis(600)).await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(after_a_crash(&path).await, 1);
}

#[tokio::test]
async fn writers_without_a_pause_do_not_put_the_disk_off() {
    let (_directory, path) = scratch();
    let store = relaxed(&path, Duration::from_millis(50));
    create(&store, "Staff").await;
    let end = tokio::time::Instant::now() + Duration::from_millis(600);
    let mut number = 0;
    while tokio::time::Instant::now() < end {
        insert(&store, "Staff", row("p", &number.to_string(), number)).await.unwrap();
        number += 1;
    }
    assert!(after_a_crash(&path).await > 0);
}

#[tokio::test]
async fn a_store_that_is_dropped_loses_nothing() {
    let (_directory, path) = scratch();
    let store = relaxed(&path, Duration::from_secs(3600));
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    drop(store);
    assert_eq!(after_a_crash(&path).await, 1);
}
