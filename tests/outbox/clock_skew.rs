//! Tests programs whose clocks are hours apart: the store's own clock determines ages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{Clock, OutboxOptions, SteppedClock, Ticks, prelude::*};
use serde::{Deserialize, Serialize};

use crate::fixture::{Employee, World, employee};

#[derive(Debug, Serialize, Deserialize, Message)]
struct Welcome {
    id: u32,
}

/// A clock that is ahead of another clock by a number of hours.
#[derive(Debug)]
struct Skewed(Arc<SteppedClock>, i64);

impl Clock for Skewed {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.now().get() + self.1 * 36_000_000_000).unwrap()
    }
}

fn client(world: &World, hours: i64) -> Client {
    Client::builder()
        .backend(world.recorder.clone())
        .clock(Arc::new(Skewed(world.clock.clone(), hours)))
        .outbox(OutboxOptions::default().background(0))
        .build()
        .unwrap()
}

const HOURS: [i64; 2] = [-7, 7];

#[tokio::test]
async fn copies_are_confirmed_by_the_stores_clock() {
    for (writer, worker) in [(-7, 7), (7, -7)] {
        let world = World::left_to_workers().await;
        let staff = client(&world, writer).table::<Employee>();
        let stored = staff.insert(&employee(1)).await.unwrap();
        staff.delete(&stored).await.unwrap();
        let worker = client(&world, worker).worker().with::<Employee>();
        // Young work is waited for, and confirmed a flight later, not before.
        assert_eq!(worker.drain().await.unwrap().waiting, 1);
        world.later(OutboxOptions::WRITE_DEADLINE / 2);
        assert_eq!(worker.drain().await.unwrap().waiting, 1);
        assert_eq!(world.open().await.len(), 1);
        world.later(OutboxOptions::WRITE_DEADLINE / 2);
        worker.drain().await.unwrap();
        assert!(world.open().await.is_empty());
    }
}

#[tokio::test]
async fn a_grace_is_the_stores() {
    for hours in HOURS {
        let world = World::left_to_workers().await;
        world.staff.insert(&employee(1)).await.unwrap();
        let run = async || {
            let worker = client(&world, hours).worker().with::<Employee>();
            let worker = worker.interval(Duration::from_millis(1));
            worker.run(tokio::time::sleep(Duration::from_millis(40))).await;
            worker.stats().applied
        };
        assert_eq!(run().await, 0);
        world.later(OutboxOptions::GRACE);
        assert_eq!(run().await, 1);
    }
}

#[tokio::test]
async fn partitions_are_closed_by_the_stores_clock() {
    for (writer, worker) in [(-7, 7), (7, -7)] {
        let world = World::new().await;
        let staff = client(&world, writer).table::<Employee>();
        staff.insert(&employee(1)).await.unwrap();
        let worker = client(&world, worker).worker().with::<Employee>();
        worker.drain().await.unwrap();
        assert_eq!((worker.stats().closed, world.markers().await), (0, 1));
        world.later(OutboxOptions::CLOSE_IDLE_AFTER);
        worker.drain().await.unwrap();
        assert_eq!((worker.stats().closed, world.markers().await), (1, 0));
        // The writer, whose clock did not move, registers again.
        staff.insert(&employee(2)).await.unwrap();
        assert_eq!(world.markers().await, 1);
        worker.drain().await.unwrap();
        assert_eq!(world.rows("Staff", "email_jones2@contoso.com").await.len(), 1);
    }
}

/// While a worker has a message, one whose clock is hours ahead does not take it.
#[tokio::test]
async fn a_message_is_leased_by_the_stores_clock() {
    for (first, second) in [(-7, 7), (7, -7)] {
        let world = World::new().await;
        let mut egt = world.staff.transaction();
        egt.in_partition("Sales").unwrap().emit(&Welcome { id: 1 }).unwrap();
        egt.commit().await.unwrap();
        let calls = Arc::new(AtomicU32::new(0));
        let other = {
            let calls = calls.clone();
            client(&world, second).worker().on(move |_, _: Welcome| {
                calls.fetch_add(1, Ordering::SeqCst);
                async { Ok(()) }
            })
        };
        let worker = {
            let (calls, other) = (calls.clone(), other.clone());
            client(&world, first).worker().on(move |_, _: Welcome| {
                calls.fetch_add(1, Ordering::SeqCst);
                let other = other.clone();
                async move {
                    let stats = other.drain().await?;
                    assert_eq!(stats.applied, 0, "it is somebody else's");
                    // The worker dies with the message in its hands.
                    std::future::pending::<()>().await;
                    Ok(())
                }
            })
        };
        let died = tokio::time::timeout(Duration::from_millis(50), worker.drain()).await;
        assert!(died.is_err());
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(other.drain().await.unwrap().applied, 0);
        // The store's clock says when the lease is over: a second later than for its holder.
        world.later(Duration::from_secs(60) + Duration::from_secs(1));
        assert_eq!(other.drain().await.unwrap().applied, 1);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn moves_and_receipts_keep_to_the_stores_clock() {
    for (writer, worker) in [(-7, 7), (7, -7)] {
        let world = World::left_to_workers().await;
        let writer = client(&world, writer);
        let staff = writer.table::<Employee>();
        let stored = staff.insert(&employee(1)).await.unwrap();
        let mut moved = stored.clone();
        moved.department = "Marketing".into();
        drop(staff.move_to(&moved, &staff).await.unwrap());
        let worker = client(&world, worker).worker().with::<Employee>();
        worker.drain().await.unwrap();
        let receipts = async || {
            let rows = world.rows("Staff", "Marketing").await;
            rows.into_iter().filter(|key| key.starts_with("~e4_")).count()
        };
        assert!(world.rows("Staff", "Sales").await.iter().all(|key| key.starts_with("~e")));
        assert_eq!(receipts().await, 1);
        world.later(OutboxOptions::WRITE_DEADLINE / 2);
        worker.drain().await.unwrap();
        assert_eq!(receipts().await, 1, "somebody may still carry it over once more");
        world.later(OutboxOptions::WRITE_DEADLINE / 2);
        worker.drain().await.unwrap();
        assert_eq!(receipts().await, 0);
        assert!(world.open().await.is_empty());
    }
}

/// Several processes, each with clients, writers and workers of its own, on one store.
#[tokio::test]
async fn several_processes_share_one_store() {
    let world = World::new().await;
    let processes: Vec<Client> = [-7, 0, 7].map(|hours| client(&world, hours)).into();
    let handed = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = processes
        .iter()
        .map(|process| {
            let counter = handed.clone();
            process.worker().with::<Employee>().on(move |_, _: Welcome| {
                counter.fetch_add(1, Ordering::SeqCst);
                async { Ok(()) }
            })
        })
        .collect();
    let writers = processes.iter().enumerate().map(|(at, process)| async move {
        let staff = process.table::<Employee>();
        for id in 0..20 {
            let mut egt = staff.transaction();
            let one = employee(at as u32 * 100 + id);
            egt.insert(&one).unwrap().emit(&Welcome { id }).unwrap();
            egt.commit().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let working = workers.iter().map(|worker| async move {
        for _ in 0..10 {
            worker.drain().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    tokio::join!(futures_util::future::join_all(writers), futures_util::future::join_all(working));
    for worker in &workers {
        assert_eq!(worker.drain().await.unwrap().open, 0);
    }
    assert_eq!(handed.load(Ordering::SeqCst), 60, "leases keep messages apart");
    assert_eq!(world.rows("StaffByName", "Jones").await.len(), 60);
    assert!(world.open().await.is_empty());
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    workers[1].drain().await.unwrap();
    assert_eq!(world.markers().await, 0);
}
