//! Tests that bulk writes send the rows of a slow stream before a hundred of a partition have
//! arrived.

use std::time::Duration;

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use futures_util::{StreamExt, future, stream};
use tokio::time::{Instant, sleep};

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Readings", partition_key = "{sensor}", row_key = "at_{id:06}")]
struct Reading {
    sensor: String,
    id: u32,
}

fn reading(sensor: &str, id: u32) -> Reading {
    Reading { sensor: sensor.into(), id }
}

async fn readings() -> (Recorder, Table<Reading>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let readings = client.table::<Reading>();
    readings.create().await.unwrap();
    recorder.clear();
    (recorder, readings)
}

/// The operations of each transaction so far.
fn sent(recorder: &Recorder) -> Vec<usize> {
    recorder.requests().iter().map(|request| request.operations()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_sent_while_the_stream_has_nothing() {
    let (recorder, readings) = readings().await;
    let start = Instant::now();
    let rows = (0..3).map(|id| reading("a", id)).chain([reading("b", 0)]);
    let rows = stream::iter(rows).chain(stream::pending());
    let bulk = tokio::spawn(readings.bulk().insert_stream(rows));
    sleep(Duration::from_millis(150)).await;
    assert_eq!(recorder.count(), 0, "others of the partition may still come");
    while recorder.count() < 2 {
        assert!(start.elapsed() < Duration::from_secs(1), "the rows are kept back");
        sleep(Duration::from_millis(1)).await;
    }
    assert!(start.elapsed() < Duration::from_millis(210), "{:?}", start.elapsed());
    let mut sent = sent(&recorder);
    sent.sort_unstable();
    assert_eq!(sent, [1, 3]);
    bulk.abort();
}

#[tokio::test(start_paused = true)]
async fn a_row_waits_no_longer_because_others_keep_coming() {
    let (recorder, readings) = readings().await;
    let rows = stream::iter(0..50).then(|id| async move {
        sleep(Duration::from_millis(30)).await;
        reading("a", id)
    });
    let report = readings.bulk().insert_stream(rows).await.unwrap();
    assert_eq!(report.done, 50);
    // One row each 30 ms, sent 200 ms after the first of them: that one and six more.
    assert_eq!(sent(&recorder), [7, 7, 7, 7, 7, 7, 7, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_short_pause_splits_no_transaction() {
    let (recorder, readings) = readings().await;
    let rows = stream::iter((0..250).map(|id| reading("a", id)));
    let late = stream::once(async {
        sleep(Duration::from_millis(100)).await;
        reading("a", 250)
    });
    readings.bulk().insert_stream(rows.chain(late)).await.unwrap();
    assert_eq!(sent(&recorder), [100, 100, 51], "a pause below the time that rows wait");
}

#[tokio::test(start_paused = true)]
async fn how_long_rows_wait_is_an_option() {
    let (recorder, readings) = readings().await;
    let slow = |from: u32| {
        stream::iter(from..from + 10).then(|id| async move {
            sleep(Duration::from_secs(60)).await;
            reading("a", id)
        })
    };
    readings.bulk().linger(Duration::MAX).insert_stream(slow(0)).await.unwrap();
    assert_eq!(sent(&recorder), [10], "a row that may wait for ever waits for the end");
    recorder.clear();
    readings.bulk().linger(Duration::ZERO).insert_stream(slow(10)).await.unwrap();
    assert_eq!(sent(&recorder), [1; 10], "no row waits");
}

#[tokio::test(start_paused = true)]
async fn rows_that_were_sent_early_keep_the_order_of_their_entity() {
    let (_, readings) = readings().await;
    let pause = stream::once(sleep(Duration::from_secs(1))).filter_map(|()| future::ready(None));
    let once = stream::iter([reading("a", 1)]);
    let rows = once.clone().chain(pause).chain(once);
    let report = readings.bulk().insert_stream(rows).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (1, 1));
    assert_eq!(report.failed[0].index, 1);
    assert!(report.failed[0].error.is_conflict());
}
