//! Tests deleted tables and unused space.

use std::{
    fs,
    time::{Duration, Instant},
};

use entable::{
    Filter,
    backend::{Backend, Embedded, ScanRequest, TableRequest},
};

use crate::{count, create, delete, fill, insert, row, scratch};

#[tokio::test]
async fn a_deleted_table_is_gone_at_once_and_its_name_is_free() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 20_000).await;
    let start = Instant::now();
    delete(&store, "Staff").await;
    assert!(start.elapsed() < Duration::from_millis(500), "took {:?}", start.elapsed());
    assert!(insert(&store, "Staff", row("p", "r", 1)).await.unwrap_err().is_not_found());
    create(&store, "staff").await;
    assert_eq!(count(&store, "Staff").await, 0);
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    assert_eq!(count(&store, "Staff").await, 1);
}

#[tokio::test]
async fn the_space_of_a_deleted_table_comes_back() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Kept").await;
    fill(&store, "Kept", "p", 100).await;
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 20_000).await;
    let full = fs::metadata(&path).unwrap().len();
    delete(&store, "Staff").await;
    store.compact().await.unwrap();
    let compact = fs::metadata(&path).unwrap().len();
    assert!(compact * 4 < full, "{compact} of {full} bytes are left");
    assert_eq!(count(&store, "Kept").await, 100);
    store.verify().await.unwrap();
}

#[tokio::test]
async fn a_compact_file_stays_compact_until_it_is_written() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 20_000).await;
    store.compact().await.unwrap();
    let compact = fs::metadata(&path).unwrap().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(count(&store, "Staff").await, 20_000);
    assert_eq!(fs::metadata(&path).unwrap().len(), compact);
    insert(&store, "Staff", row("q", "r", 1)).await.unwrap();
    assert_eq!(count(&store, "Staff").await, 20_001);
}

#[tokio::test]
async fn a_table_that_was_being_reclaimed_is_reclaimed_after_reopening() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 20_000).await;
    let full = fs::metadata(&path).unwrap().len();
    delete(&store, "Staff").await;
    drop(store);
    let store = Embedded::open(&path).unwrap();
    store.compact().await.unwrap();
    let compact = fs::metadata(&path).unwrap().len();
    assert!(compact * 4 < full, "{compact} of {full} bytes are left");
}

#[tokio::test]
async fn a_scan_that_stands_still_does_not_hold_a_drop_up() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 5_000).await;
    let filter = Filter::Constant(false);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    let mut scan = store.scan(scan);
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(scan.as_mut().poll(context).is_pending())
    });
    assert!(polled.await, "the scan ended in one turn");
    delete(&store, "Staff").await;
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    assert!(scan.await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn a_name_can_stay_taken_for_a_while() {
    let (_directory, path) = scratch();
    let options = Embedded::options().deleting_takes(Duration::from_millis(200));
    let store = options.open(&path).unwrap();
    create(&store, "Staff").await;
    delete(&store, "Staff").await;
    let error = store.tables(TableRequest::Create("STAFF")).await.unwrap_err();
    assert_eq!(error.code(), Some("TableBeingDeleted"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    create(&store, "Staff").await;
}
