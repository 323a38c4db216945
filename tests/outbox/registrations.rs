//! Tests registrations: many at once, incomplete ones, and ones that are closed while their writer
//! runs.

use entable::{
    OutboxOptions,
    backend::layer::{InjectedFault, Request, RequestKind},
    prelude::*,
};

use crate::fixture::{Employee, World, employee};

fn in_department(department: usize, id: u32) -> Employee {
    Employee { department: format!("d{department:03}"), ..employee(id) }
}

async fn fences(world: &World, partition_key: &str) -> Vec<String> {
    let rows = world.rows("Staff", partition_key).await;
    rows.into_iter().filter(|key| key.starts_with("~e0_")).collect()
}

#[tokio::test]
async fn many_partitions_are_registered_together() {
    let world = World::left_to_workers().await;
    world.client.create_table("EntableDirectory").await.unwrap();
    world.recorder.clear();
    let all = (0..3).flat_map(|id| (0..200).map(move |department| in_department(department, id)));
    world.staff.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    let requests = world.recorder.take();
    let marked = requests.iter().filter_map(|request| match request {
        Request::Apply { table, operations, .. } if table == "EntableDirectory" => {
            Some(operations.len())
        }
        _ => None,
    });
    let marked: Vec<usize> = marked.collect();
    assert_eq!(marked.iter().sum::<usize>(), 200, "a marker for each partition");
    assert!(marked.len() <= 16, "a transaction for each shard: {marked:?}");
    // Everything has a fence, and is found by a worker.
    assert_eq!(world.markers().await, 200);
    assert_eq!(fences(&world, "d117").await.len(), 1);
    let stats = world.other_client().worker().with::<Employee>().drain().await.unwrap();
    assert_eq!((stats.open, stats.applied), (0, 600));
}

#[tokio::test]
async fn partitions_that_are_registered_are_not_registered_again() {
    let world = World::left_to_workers().await;
    let all = |id: u32| (0..20).map(move |department| in_department(department, id));
    world.staff.bulk().insert_all(all(1)).await.unwrap().into_result().unwrap();
    world.recorder.clear();
    world.staff.bulk().insert_all(all(2)).await.unwrap().into_result().unwrap();
    assert_eq!(world.requests().len(), 20);
    assert_eq!(world.markers().await, 20);
}

#[tokio::test]
async fn markers_that_fail_together_are_put_up_one_by_one() {
    let world = World::left_to_workers().await;
    world.client.create_table("EntableDirectory").await.unwrap();
    // The first transactions that follow the fences are those of the markers.
    for at in 40..44 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::After(lost));
    }
    let all = (0..40).map(|department| in_department(department, 1));
    world.staff.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    assert_eq!(world.markers().await, 40);
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.applied), (0, 40));
}

#[tokio::test]
async fn a_directory_that_is_down_fails_writes_and_leaves_one_fence() {
    let world = World::left_to_workers().await;
    world.client.create_table("EntableDirectory").await.unwrap();
    // The first request is the fence; every further one is its marker.
    for at in 1..=3 {
        let busy = Error::new(ErrorKind::Throttled, "the shard is full");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(busy));
    }
    for _ in 0..3 {
        let error = world.staff.insert(&employee(1)).await.unwrap_err();
        assert!(error.is_throttled(), "{error}");
        let rows = world.rows("Staff", "Sales").await;
        assert_eq!(rows.len(), 1, "nothing but the fence: {rows:?}");
    }
    world.staff.insert(&employee(1)).await.unwrap();
    assert_eq!((fences(&world, "Sales").await.len(), world.markers().await), (1, 1));
    assert_eq!(world.other_client().worker().with::<Employee>().drain().await.unwrap().applied, 1);
}

/// A process that dies between fence and marker leaves a fence that nobody stands behind.
async fn orphaned(world: &World) {
    world.client.create_table("EntableDirectory").await.unwrap();
    let died = Error::new(ErrorKind::Throttled, "the process died");
    world.fault.inject(RequestKind::Apply, 1, InjectedFault::Before(died));
    assert!(world.staff.insert(&employee(1)).await.is_err());
    assert_eq!((fences(world, "Sales").await.len(), world.markers().await), (1, 0));
}

#[tokio::test]
async fn a_fence_without_a_marker_does_no_harm() {
    let world = World::left_to_workers().await;
    orphaned(&world).await;
    // Nobody visits the partition for its sake, and no reader meets it.
    let worker = world.other_client().worker().with::<Employee>();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    assert_eq!(worker.drain().await.unwrap().closed, 0);
    let all = world.staff.query(Employee::primary().department("Sales")).collect().await.unwrap();
    assert!(all.is_empty());
    assert!(world.staff.check().await.unwrap().is_clean());
    // Another process works there as ever.
    let other = world.other_client().table::<Employee>();
    other.insert(&employee(2)).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!((fences(&world, "Sales").await.len(), world.markers().await), (2, 1));
    // The worker that visits the partition for the other's sake closes both.
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert_eq!((fences(&world, "Sales").await.len(), world.markers().await), (0, 0));
}

#[tokio::test]
async fn a_writer_whose_half_registration_was_closed_registers_again() {
    let world = World::left_to_workers().await;
    orphaned(&world).await;
    let other = world.other_client().table::<Employee>();
    other.insert(&employee(2)).await.unwrap().wait_for_copies().await.unwrap();
    let worker = world.other_client().worker().with::<Employee>();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert!(fences(&world, "Sales").await.is_empty());
    // It goes on with the fence that it put up, finds it gone, and takes another.
    world.staff.insert(&employee(1)).await.unwrap();
    assert_eq!(fences(&world, "Sales").await.len(), 1);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.applied), (0, 1));
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert_eq!((fences(&world, "Sales").await.len(), world.markers().await), (0, 0));
}
