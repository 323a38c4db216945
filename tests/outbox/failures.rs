//! Tests which failures count towards poison, and which are retried without limit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{
    OutboxOptions, Worker,
    backend::{
        Backend, Memory, TableRequest,
        layer::{InjectedFault, RequestKind},
    },
    prelude::*,
};
use serde::{Deserialize, Serialize};

use crate::fixture::{World, employee};

#[derive(Debug, Serialize, Deserialize, Message)]
struct Welcome {
    id: u32,
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Farewell {
    id: u32,
}

/// An error of the program's own around one of entable's.
#[derive(Debug)]
struct Unwelcome(Error);

impl std::fmt::Display for Unwelcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody was welcomed")
    }
}

impl std::error::Error for Unwelcome {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

async fn emit<M: Serialize + Message>(world: &World, message: &M) {
    let mut egt = world.staff.transaction();
    egt.in_partition("Sales").unwrap().emit(message).unwrap();
    egt.commit().await.unwrap();
}

/// Fails with the given error, as often as given.
fn failing(
    world: &World,
    times: u32,
    error: impl Fn(u32) -> BoxError + Send + Sync + 'static,
) -> (Worker, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let (counter, error) = (calls.clone(), Arc::new(error));
    let worker = world.client.worker().on(move |_, _: Welcome| {
        let (call, error) = (counter.fetch_add(1, Ordering::SeqCst), error.clone());
        async move { if call < times { Err(error(call)) } else { Ok(()) } }
    });
    (worker, calls)
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_and_never_poison() {
    let kinds = [
        ErrorKind::Throttled,
        ErrorKind::Backend,
        ErrorKind::Contended,
        ErrorKind::Ambiguous,
        ErrorKind::PreconditionFailed,
        ErrorKind::KeyUnavailable,
    ];
    for kind in kinds {
        for is_wrapped in [false, true] {
            let world = World::new().await;
            emit(&world, &Welcome { id: 1 }).await;
            let (worker, calls) = failing(&world, 12, move |_| {
                let error = Error::new(kind, "not now");
                if is_wrapped { Unwelcome(error).into() } else { error.into() }
            });
            let stats = worker.drain().await.unwrap();
            assert_eq!((stats.poisoned, stats.open), (0, 0), "{kind:?}");
            assert_eq!((stats.retried, calls.load(Ordering::SeqCst)), (12, 13), "{kind:?}");
            assert!(world.open().await.is_empty());
            assert!(worker.poisoned().await.unwrap().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_what_passes_does_not() {
    let world = World::new().await;
    emit(&world, &Welcome { id: 1 }).await;
    emit(&world, &Farewell { id: 1 }).await;
    let down = |_| Error::new(ErrorKind::Throttled, "the mail server is full").into();
    let (worker, _) = failing(&world, u32::MAX, down);
    let worker = worker.on(|_, _: Farewell| async { Ok(()) });
    let error = worker.drain().await.unwrap_err();
    assert!(error.is_throttled(), "{error}");
    // The other one is done, and this one is there, with its reason and without a failure.
    let open = world.open().await;
    assert_eq!(open.len(), 1);
    let row = world.client.dynamic("Staff").get("Sales", &open[0]).await.unwrap().unwrap();
    assert!(row.str("Error").unwrap().contains("the mail server is full"));
    assert_eq!(row.get("Failures"), None);
    assert_eq!(worker.stats().poisoned, 0);
}

#[tokio::test(start_paused = true)]
async fn what_passes_does_not_count_between_failures_that_do() {
    let world = World::new().await;
    emit(&world, &Welcome { id: 1 }).await;
    // Every third failure counts: the fifth of those is the last.
    let (worker, calls) = failing(&world, u32::MAX, |call| match call % 3 {
        2 => "for good".into(),
        _ => Error::new(ErrorKind::Backend, "for now").into(),
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, calls.load(Ordering::SeqCst)), (1, 15));
    assert_eq!(worker.poisoned().await.unwrap()[0].error, "for good");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_counts() {
    for kind in [ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::Invalid, ErrorKind::Decode] {
        let world = World::new().await;
        emit(&world, &Welcome { id: 1 }).await;
        let (worker, calls) =
            failing(&world, u32::MAX, move |_| Unwelcome(Error::new(kind, "no")).into());
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.poisoned, calls.load(Ordering::SeqCst)), (1, 5), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_counts() {
    let world = World::new().await;
    emit(&world, &Welcome { id: 1 }).await;
    let (worker, calls) = failing(&world, u32::MAX, |_| panic!("at the wrong time"));
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, calls.load(Ordering::SeqCst)), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn an_entity_on_its_way_is_waited_for() {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    let archive = world.client.table_named::<crate::fixture::Employee>("Archive");
    archive.create_if_not_exists().await.unwrap();
    drop(world.staff.move_to(&stored, &archive).await.unwrap());
    emit(&world, &Welcome { id: 1 }).await;
    let tries = Arc::new(AtomicU32::new(0));
    let (counter, staff) = (tries.clone(), world.staff.clone());
    let worker = world.other_client().worker().on(move |_, _: Welcome| {
        counter.fetch_add(1, Ordering::SeqCst);
        let staff = staff.clone();
        async move {
            let point = crate::fixture::Employee::primary().department("Sales").id(1);
            staff.patch_at(point, crate::fixture::Employee::patch().age(40)).await?;
            Ok(())
        }
    });
    assert!(worker.drain().await.unwrap_err().is_conflict());
    assert!(tries.load(Ordering::SeqCst) > OutboxOptions::POISON_AFTER);
    assert!(worker.poisoned().await.unwrap().is_empty());
}

/// A worker that runs waits longer with each try.
#[tokio::test(start_paused = true)]
async fn what_passes_is_waited_for() {
    let world = World::new().await;
    emit(&world, &Welcome { id: 1 }).await;
    world.later(OutboxOptions::GRACE);
    let (worker, calls) =
        failing(&world, u32::MAX, |_| Error::new(ErrorKind::Throttled, "busy").into());
    let worker = worker.interval(Duration::from_millis(100));
    // The store's clock stands still: what is delayed is never due.
    worker.run(tokio::time::sleep(Duration::from_secs(600))).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    for tries in 2..6 {
        world.later(Duration::from_secs(300));
        worker.run(tokio::time::sleep(Duration::from_secs(600))).await;
        assert_eq!(calls.load(Ordering::SeqCst), tries);
    }
    // By then it is much more than at first.
    world.later(Duration::from_secs(20));
    worker.run(tokio::time::sleep(Duration::from_secs(600))).await;
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}

/// A worker dies between the mark and the poison table: nobody hands the message over again.
#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_to_the_poison_table_is_not_handed_over() {
    let world = World::with(OutboxOptions::default().poison_after(1)).await;
    emit(&world, &Welcome { id: 1 }).await;
    // Taken, marked; then the poison table is out of reach.
    for at in 2..60 {
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(lost));
    }
    let (worker, calls) = failing(&world, u32::MAX, |_| "for good".into());
    assert!(worker.drain().await.unwrap_err().is_backend());
    assert_eq!((calls.load(Ordering::SeqCst), world.open().await.len()), (1, 1));
    let handed = Arc::new(AtomicU32::new(0));
    let counter = handed.clone();
    let other = world.other_client().worker().on(move |_, _: Welcome| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let stats = other.drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.applied, handed.load(Ordering::SeqCst)), (1, 0, 0));
    assert!(world.open().await.is_empty());
    let poisoned = other.poisoned().await.unwrap();
    assert_eq!((poisoned.len(), poisoned[0].error.as_str()), (1, "for good"));
    // Put back, it begins anew.
    other.requeue(&poisoned[0]).await.unwrap();
    assert_eq!(other.drain().await.unwrap().applied, 1);
    assert_eq!(handed.load(Ordering::SeqCst), 1);
    assert!(world.open().await.is_empty() && other.poisoned().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_long_error_is_kept_as_far_as_there_is_room() {
    let world = World::new().await;
    emit(&world, &Welcome { id: 1 }).await;
    let (worker, _) = failing(&world, u32::MAX, |_| "\u{e9}".repeat(100_000).into());
    assert_eq!(worker.drain().await.unwrap().poisoned, 1);
    let poisoned = worker.poisoned().await.unwrap();
    assert!(poisoned[0].error.starts_with("\u{e9}\u{e9}"));
    worker.requeue(&poisoned[0]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn messages_that_nobody_handles_block_nothing() {
    let world = World::left_to_workers().await;
    for id in 0..60 {
        emit(&world, &Farewell { id }).await;
    }
    world.staff.insert(&employee(1)).await.unwrap();
    emit(&world, &Welcome { id: 1 }).await;
    let (worker, calls) = failing(&world, 0, |_| "never".into());
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.unknown, stats.open, stats.applied), (60, 0, 2));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(world.open().await.len(), 60);
    // They wait in the directory for a program that knows them.
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert_eq!(world.markers().await, 1);
    let later = world.other_client().worker().on(|_, _: Farewell| async { Ok(()) });
    assert_eq!(later.drain().await.unwrap().applied, 60);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_holds_the_others_up_for_its_lease_at_most() {
    let world = World::left_to_workers().await;
    for id in 0..30 {
        emit(&world, &Farewell { id }).await;
    }
    emit(&world, &Welcome { id: 1 }).await;
    let done = Arc::new(AtomicU32::new(0));
    let counter = done.clone();
    let worker = world
        .client
        .worker()
        .interval(Duration::from_millis(10))
        .lease(Duration::from_secs(5))
        .on(|_, _: Welcome| std::future::pending())
        .on(move |_, _: Farewell| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        });
    world.later(OutboxOptions::GRACE);
    worker.run(tokio::time::sleep(Duration::from_millis(5_500))).await;
    assert_eq!(done.load(Ordering::SeqCst), 30);
    assert_eq!(worker.stats().applied, 30);
}

/// The service's answer while it deletes a table is a conflict, and does not mean that a row exists.
#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_the_poison_table_is_being_deleted() {
    let memory = Memory::new().deleting_takes(Duration::from_secs(40));
    memory.tables(TableRequest::Create("Gone")).await.unwrap();
    memory.tables(TableRequest::Delete("Gone")).await.unwrap();
    let deleted = memory.tables(TableRequest::Create("Gone")).await.unwrap_err();
    assert_eq!((deleted.is_conflict(), deleted.code()), (true, Some("TableBeingDeleted")));
    let world = World::with(OutboxOptions::default().poison_after(1)).await;
    emit(&world, &Welcome { id: 1 }).await;
    // Taken, marked; then the poison table is on its way out.
    world.fault.inject(RequestKind::Apply, 2, InjectedFault::Before(deleted.clone()));
    let (worker, _) = failing(&world, u32::MAX, |_| "for good".into());
    assert_eq!(worker.drain().await.unwrap().poisoned, 1);
    assert_eq!(worker.poisoned().await.unwrap().len(), 1, "it is in no table");
    // Nor is a message of a queue sent that is nowhere.
    let queue = world.client.queue("letters");
    queue.send(&Farewell { id: 1 }).await.unwrap();
    world.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(deleted));
    assert!(queue.send(&Farewell { id: 2 }).await.unwrap_err().is_conflict());
}
