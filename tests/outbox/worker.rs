//! Tests workers: the work that they find, do, count and leave alone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    OutboxOptions,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use crate::fixture::{Employee, World, employee};

async fn by_email(world: &World, id: u32) -> usize {
    world.rows("Staff", &format!("email_jones{id}@contoso.com")).await.len()
}

#[tokio::test]
async fn what_writers_leave_is_done() {
    let world = World::left_to_workers().await;
    for id in 1..=30 {
        world.staff.insert(&employee(id)).await.unwrap();
    }
    assert_eq!(by_email(&world, 1).await, 0);
    assert_eq!(world.open().await.len(), 30);
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.applied, stats.written), (0, 30, 60));
    for id in 1..=30 {
        assert_eq!(by_email(&world, id).await, 1);
    }
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_worker_of_another_process_knows_the_types_it_is_told() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let other = world.other_client();
    let stats = other.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.unknown, stats.applied), (0, 1, 0));
    assert_eq!(world.open().await.len(), 1);
    let stats = other.worker().with::<Employee>().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied), (0, 1));
    assert_eq!(by_email(&world, 1).await, 1);
}

#[tokio::test]
async fn several_workers_do_the_work_once() {
    let world = World::left_to_workers().await;
    for id in 1..=20 {
        world.staff.insert(&employee(id)).await.unwrap();
    }
    let workers = [1, 2, 3].map(|_| world.other_client().worker().with::<Employee>());
    let [a, b, c] = &workers;
    let (a, b, c) = tokio::join!(a.drain(), b.drain(), c.drain());
    assert!(a.unwrap().open + b.unwrap().open + c.unwrap().open == 0);
    world.later(OutboxOptions::WRITE_DEADLINE);
    world.client.worker().drain().await.unwrap();
    for id in 1..=20 {
        assert_eq!(by_email(&world, id).await, 1);
    }
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn an_idle_partition_leaves_the_directory() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.markers().await, 1);
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    assert_eq!(world.markers().await, 1);
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    assert_eq!(worker.drain().await.unwrap().closed, 1);
    assert_eq!(world.markers().await, 0);
    assert_eq!(world.rows("Staff", "Sales").await, ["empid_000001"]);
    // The writer registers again.
    world.staff.insert(&employee(2)).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.markers().await, 1);
    assert_eq!(by_email(&world, 2).await, 1);
}

#[tokio::test]
async fn a_partition_with_open_work_stays_in_the_directory() {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert_eq!((world.markers().await, world.open().await.len()), (1, 1));
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!((world.markers().await, world.open().await.len()), (0, 0));
}

#[tokio::test]
async fn a_table_that_is_gone_leaves_the_directory() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete_table().await.unwrap();
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.markers().await, 0);
}

#[tokio::test]
async fn work_that_fails_for_good_is_put_aside_and_can_be_put_back() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.client.delete_table("StaffByName").await.unwrap();
    let worker = world.client.worker();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.poisoned), (0, 1));
    assert!(world.open().await.is_empty());
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(poisoned.len(), 1);
    assert_eq!((poisoned[0].table.as_str(), poisoned[0].row_key()), ("Staff", "~e2_empid_000001"));
    assert!(poisoned[0].error.contains("StaffByName"), "{}", poisoned[0].error);
    world.client.create_table("StaffByName").await.unwrap();
    worker.requeue(&poisoned[0]).await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(world.rows("StaffByName", "Jones").await.len(), 1);
    assert!(worker.poisoned().await.unwrap().is_empty());
}

/// A page of the directory has at most 1,000 markers.
#[tokio::test]
async fn a_directory_of_more_than_a_page_is_read_whole() {
    let world = World::left_to_workers().await;
    let all = (0..1_100).map(|id| Employee { department: format!("d{id:04}"), ..employee(id) });
    world.client.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    assert_eq!(world.markers().await, 1_100);
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.applied, stats.open), (1_100, 0));
    assert_eq!(by_email(&world, 1_099).await, 1);
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.markers().await, 0);
}

#[tokio::test]
async fn throttling_is_no_reason_to_give_up() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    for at in 0..12 {
        let busy = Error::new(ErrorKind::Throttled, "slow down");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(busy));
    }
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.applied), (0, 1));
    assert!(stats.failures > 0);
}

#[tokio::test]
async fn the_status_counts_open_work_and_says_why_a_row_is_stuck() {
    let world = World::left_to_workers().await;
    let idle = world.client.outbox_status().await.unwrap();
    assert_eq!((idle.partitions, idle.dirty_rows, idle.oldest), (0, 0, None));
    world.staff.insert(&employee(1)).await.unwrap();
    world.later(Duration::from_secs(60));
    world.staff.insert(&employee(2)).await.unwrap();
    let message = DynamicEntity::new("Sales", "~e3_m1")
        .with_framework_names()
        .with("EntityType", "entable.message")
        .with("Format", 1)
        .with("Type", "Welcome")
        .with("Version", 1)
        .with("Body", "{}")
        .with("Failures", 1)
        .with("Error", "the mail server refused it");
    world.client.dynamic("Staff").insert(&message).await.unwrap();
    let before = world.rows("Staff", "Sales").await;
    let status = world.client.outbox_status().await.unwrap();
    assert_eq!((status.partitions, status.dirty_rows, status.messages), (1, 2, 1));
    assert!(status.oldest >= Some(Duration::from_secs(60)), "{status:?}");
    let [stuck] = &status.stuck[..] else { panic!("{status:?}") };
    assert_eq!((stuck.table.as_str(), stuck.row_key.as_str()), ("Staff", "~e3_m1"));
    assert_eq!(stuck.reason, "the mail server refused it");
    assert_eq!(world.rows("Staff", "Sales").await, before);
    // A program that does not know the type.
    let status = world.other_client().outbox_status().await.unwrap();
    assert_eq!((status.dirty_rows, status.stuck.len()), (2, 3));
    assert!(status.stuck[0].reason.contains("Employee#By"), "{:?}", status.stuck[0]);
    world.client.worker().drain().await.unwrap();
    world.client.delete_table("Staff").await.unwrap();
    assert_eq!(world.client.outbox_status().await.unwrap().dirty_rows, 0);
}

/// Refused credentials are told in the first round, and the numbers say when they are let in again.
#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_at_once_and_counted_until_it_passes() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.later(OutboxOptions::GRACE);
    let reported = Arc::new(Mutex::new(Vec::new()));
    let worker = world.client.worker().interval(Duration::from_secs(5)).on_error({
        let reported = reported.clone();
        move |error: &Error| reported.lock().unwrap().push(error.kind())
    });
    assert_eq!(worker.stats().last_error, None);
    for _ in 0..3 {
        let denied = Error::new(ErrorKind::Denied, "the key is not this account's");
        world.fault.inject(RequestKind::Scan, 0, InjectedFault::Before(denied));
        worker.run(tokio::time::sleep(Duration::from_secs(1))).await;
    }
    assert_eq!(*reported.lock().unwrap(), [ErrorKind::Denied; 3]);
    let stats = worker.stats();
    let last = stats.last_error.unwrap();
    assert_eq!((stats.failures, last.count, last.kind), (3, 3, ErrorKind::Denied));
    assert!(last.message.contains("the key is not this account's"), "{}", last.message);
    assert_eq!(last.age, Duration::from_secs(1));
    // A round without a failure: the next failure is the first in a row.
    worker.run(tokio::time::sleep(Duration::from_secs(1))).await;
    assert_eq!((worker.stats().failures, worker.stats().applied), (3, 1));
    let busy = Error::new(ErrorKind::Throttled, "slow down");
    world.fault.inject(RequestKind::Scan, 0, InjectedFault::Before(busy));
    worker.drain().await.unwrap();
    let last = worker.stats().last_error.unwrap();
    assert_eq!((last.count, last.kind), (1, ErrorKind::Throttled));
    assert_eq!(reported.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_running_worker_waits_for_the_writer_and_stops_when_told() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let worker = world.client.worker().interval(Duration::from_millis(1));
    worker.run(tokio::time::sleep(Duration::from_millis(30))).await;
    assert_eq!((by_email(&world, 1).await, worker.stats().open), (0, 1));
    world.later(OutboxOptions::GRACE);
    // The worker's memory uses its own clock, which is not stepped.
    let worker = world.client.worker().interval(Duration::from_millis(1));
    worker.run(tokio::time::sleep(Duration::from_millis(60))).await;
    assert_eq!(by_email(&world, 1).await, 1);
    assert_eq!(worker.stats().applied, 1);
}

#[tokio::test]
async fn the_age_of_the_oldest_row_is_told() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.later(Duration::from_secs(7));
    world.staff.insert(&employee(2)).await.unwrap();
    let worker = world.client.worker().interval(Duration::from_millis(1));
    worker.run(tokio::time::sleep(Duration::from_millis(20))).await;
    let oldest = worker.stats().oldest.unwrap();
    assert!(oldest >= Duration::from_secs(7) && oldest < Duration::from_secs(9), "{oldest:?}");
}

#[tokio::test]
async fn the_directory_costs_little_per_write() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    world.requests();
    // Twenty more partitions, a hundred writes each; work as such is not counted.
    let (mut directory, mut writes) = (0, 0);
    for department in 0..20 {
        for id in 0..100 {
            let one = Employee { department: format!("d{department}"), ..employee(id) };
            world.staff.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
            writes += 1;
        }
        let requests = world.requests();
        directory += requests.len() - 400;
    }
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    world.client.worker().drain().await.unwrap();
    directory += world.requests().len();
    let cost = directory as f64 / f64::from(writes);
    println!("directory: {cost} requests for a write");
    assert!(cost <= 0.05, "{cost}");
}

/// Tries of work that fails each time come later and later, so that a short fault does not use up all.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_between_tries() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.client.delete_table("StaffByName").await.unwrap();
    let (began, client) = (tokio::time::Instant::now(), world.client.clone());
    // Somebody makes the table again before the fourth try.
    let mended = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.create_table("StaffByName").await.unwrap();
    });
    let stats = world.client.worker().drain().await.unwrap();
    mended.await.unwrap();
    assert_eq!((stats.applied, stats.poisoned, stats.open), (1, 0, 0), "{stats:?}");
    assert!(began.elapsed() >= Duration::from_millis(120), "{:?}", began.elapsed());
}
