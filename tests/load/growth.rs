//! Concurrency that grows while answers come, ends where they only come later, and shrinks where they are refused.

use std::time::Duration;

use entable::{
    backend::{Memory, layer::SimulatedAccount},
    prelude::*,
};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep};

use crate::world::{Limits, Reading, World, insert_from_tasks, readings};

const SOON: Duration = Duration::from_millis(5);

/// An account without limits, whose every answer takes 5 ms.
async fn boundless() -> World {
    let account = SimulatedAccount::around(Memory::new(), 1)
        .latency(SOON, SOON)
        .requests_per_second_of_account(u32::MAX)
        .entities_per_second_of_partition(u32::MAX);
    World::over(account).await
}

#[tokio::test(start_paused = true)]
async fn a_bulk_load_keeps_more_in_flight_with_each_round_trip() {
    let world = boundless().await;
    let span = world.span();
    // 2,000 transactions of 10 entities. Eight at a time would take 250 round trips: 1.25 s.
    let report = world.readings.bulk().insert_all(readings(20_000, 2_000, 10)).await.unwrap();
    assert!(report.is_complete());
    // 8 + 10 + 12.5 + .. pass 2,000 in the 19th round trip, or some later: answers that come together see a window that
    // empties.
    assert!(span.seconds() < 0.2, "{}", span.seconds());
    assert_eq!(span.requests(), 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_bound_of_the_user_stays_a_bound() {
    let world = boundless().await;
    let span = world.span();
    let load = world.readings.bulk().concurrency(8).insert_all(readings(20_000, 2_000, 10));
    assert!(load.await.unwrap().is_complete());
    assert!(span.seconds() >= 1.25, "{}", span.seconds());
}

#[tokio::test(start_paused = true)]
async fn point_reads_and_queries_grow_too() {
    let world = boundless().await;
    world.readings.bulk().insert_all(readings(4_000, 4_000, 1)).await.unwrap();
    let points = || (0..4_000).map(|sensor| Reading::primary().sensor(sensor).number(0));
    let span = world.span();
    let found = world.readings.get_many(points()).await.unwrap();
    assert!(found.iter().all(Option::is_some) && found.len() == 4_000);
    // The window has room for hundreds by now, where 32 at a time would take 125 round trips: 625 ms.
    assert!(span.seconds() < 0.1, "{}", span.seconds());
    let sensors = || (0..4_000).map(|sensor| Reading::primary().sensor(sensor));
    let span = world.span();
    let found = world.readings.query_many(sensors()).collect().await.unwrap();
    assert_eq!(found.len(), 4_000);
    assert!(span.seconds() < 0.1, "{}", span.seconds());
    let span = world.span();
    let found: Vec<_> = world.readings.query_many(sensors()).stream().collect().await;
    assert_eq!(found.len(), 4_000);
    assert!(span.seconds() < 0.1, "{}", span.seconds());
}

/// Without the setting, loads keep their fixed number of requests in flight.
#[tokio::test(start_paused = true)]
async fn nothing_grows_where_the_client_does_not_adapt() {
    let account = SimulatedAccount::around(Memory::new(), 1).latency(SOON, SOON);
    let account = account.requests_per_second_of_account(u32::MAX);
    let client = Client::builder().backend(account).build().unwrap();
    let table = client.table::<Reading>();
    table.create().await.unwrap();
    let began = Instant::now();
    table.bulk().insert_all(readings(20_000, 2_000, 10)).await.unwrap();
    let took = began.elapsed().as_secs_f64();
    assert!((1.25..1.3).contains(&took), "{took}");
}

/// After the limit drops to a tenth, a bulk load gets nine tenths of what is left, within ten seconds.
#[tokio::test(start_paused = true)]
async fn after_a_drop_to_a_tenth_a_bulk_load_is_steady_within_ten_seconds() {
    let limits = Limits { requests: 2_000, entities_of_partition: 2_000 };
    let world = World::new(3, limits).await;
    let table = world.readings.clone();
    let load = tokio::spawn(async move {
        // More than it can write in the time that is measured.
        let _ = table.bulk().insert_all(readings(60_000, 60_000, 1)).await;
    });
    sleep(Duration::from_secs(10)).await;
    world.account.limit_to_share(0.1);
    sleep(Duration::from_secs(10)).await;
    let span = world.span();
    sleep(Duration::from_secs(60)).await;
    let share = span.entities() as f64 / 60.0 / 200.0;
    assert!(share >= 0.9, "{share}");
    assert!(span.throttled_share() < 0.01, "{}", span.throttled_share());
    assert!(!load.is_finished(), "the load was too short to measure");
    load.abort();
}

/// Two loads that run together take as long as one after the other: each gets half of the window.
#[tokio::test(start_paused = true)]
async fn loads_of_one_client_share_what_is_welcome() {
    let world = boundless().await;
    let points = |count| (0..count).map(|sensor| Reading::primary().sensor(sensor).number(0));
    // The window grows to its end, which is 1,024.
    world.readings.get_many(points(40_000)).await.unwrap();
    let span = world.span();
    world.readings.get_many(points(10_240)).await.unwrap();
    let alone = span.seconds();
    assert!(alone < 0.06, "10 round trips of 5 ms take {alone} s");
    let other = world.client.table::<Reading>();
    let span = world.span();
    let (one, two) =
        tokio::join!(world.readings.get_many(points(10_240)), other.get_many(points(10_240)));
    assert!(one.is_ok() && two.is_ok());
    let together = span.seconds();
    assert!(together > 1.8 * alone, "{together} s together, {alone} s alone");
}

/// The library does not bound the tasks of a program. Only the pace of the account holds them back.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_program_are_paced_and_get_nine_tenths() {
    let limits = Limits { requests: 2_000, entities_of_partition: 2_000 };
    let world = World::new(5, limits).await;
    let span = world.span();
    let written = insert_from_tasks(&world.readings, 64, |at| {
        (at < 40_000).then_some(Reading { sensor: at as u32, number: 0, value: 1 })
    });
    assert_eq!(written.await, 40_000);
    let share = 40_000.0 / span.seconds() / 2_000.0;
    assert!(share >= 0.9, "{share}");
    assert!(span.throttled_share() < 0.01, "{}", span.throttled_share());
}
