//! Point reads and other partitions while a bulk load takes all that the account gives.

use std::time::Duration;

use entable::prelude::*;
use tokio::time::{Instant, sleep};

use crate::world::{Limits, Reading, World, insert_from_tasks, readings};

const LIMITS: Limits = Limits { requests: 2_000, entities_of_partition: 400 };

/// Reads one entity every 20 ms for `time`. Returns the times of the reads in order of length.
async fn read_times(world: &World, time: Duration) -> Vec<Duration> {
    let (end, mut times) = (Instant::now() + time, Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        let point = Reading::primary().sensor(99_999).number(7);
        assert!(world.readings.get(point).await.unwrap().is_some());
        times.push(began.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    times.sort_unstable();
    times
}

async fn with_a_row_to_read(seed: u64) -> World {
    let world = World::new(seed, LIMITS).await;
    let reading = Reading { sensor: 99_999, number: 7, value: 1 };
    world.readings.insert(&reading).await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn a_point_read_hardly_waits_behind_a_bulk_load() {
    let world = with_a_row_to_read(1).await;
    let alone = read_times(&world, Duration::from_secs(10)).await;
    let table = world.readings.clone();
    let load = tokio::spawn(async move {
        let _ = table.bulk().insert_all(readings(60_000, 60_000, 1)).await;
    });
    sleep(Duration::from_secs(5)).await;
    let under_load = read_times(&world, Duration::from_secs(20)).await;
    assert!(!load.is_finished());
    load.abort();
    let median = |times: &[Duration]| times[times.len() / 2].as_secs_f64();
    // It waits for its turn at most about as long as an answer takes.
    assert!(median(&under_load) <= 3.0 * median(&alone), "{under_load:?}");
    let p99 = under_load[under_load.len() * 99 / 100];
    assert!(p99 <= Duration::from_millis(200), "{p99:?}");
}

/// Inserts into one partition from 24 tasks until it is stopped.
fn spawn_hot_load(world: &World) -> tokio::task::JoinHandle<usize> {
    let table = world.readings.clone();
    tokio::spawn(async move {
        insert_from_tasks(&table, 24, |at| {
            Some(Reading { sensor: 70_000, number: at as u64, value: 1 })
        })
        .await
    })
}

/// The hot partition takes a fifth of the account's requests and is refused the rest.
#[tokio::test(start_paused = true)]
async fn a_hot_partition_gets_its_limit_and_a_bulk_load_on_others_does_not_suffer() {
    let world = World::new(2, LIMITS).await;
    // Four transactions at a time do not fill the account.
    let load = |number| {
        let readings = readings(10_000, 10_000, 1).map(move |one| Reading { number, ..one });
        world.readings.bulk().concurrency(4).insert_all(readings)
    };
    let span = world.span();
    assert!(load(0).await.unwrap().is_complete());
    let alone = span.seconds();
    let hot = spawn_hot_load(&world);
    sleep(Duration::from_secs(10)).await;
    let span = world.span();
    assert!(load(1).await.unwrap().is_complete());
    let seconds = span.seconds();
    hot.abort();
    assert!(seconds <= 1.03 * alone, "{seconds} s beside {alone} s");
    let share = (span.entities() - 10_000) as f64 / seconds / 400.0;
    assert!(share >= 0.9, "{share}");
}
