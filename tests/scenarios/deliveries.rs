//! Scenarios of messages: leases of the outbox and of queues, and what is counted.

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
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    prelude::*,
    queue::Queue,
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::{
    build,
    plans::{Desk, desk},
};
use crate::{
    fixture::{World, employee},
    hooked::Hooked,
    timer_clock::TimerClock,
};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Call", version = 1)]
struct Call {
    id: u32,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A store whose clock goes with the timers, and two clients.
struct Office {
    fault: FaultInjector,
    clock: Arc<TimerClock>,
    client: Client,
    other: Client,
    handed_over: Arc<AtomicU32>,
}

impl Office {
    async fn new() -> Self {
        let clock = Arc::new(TimerClock(Instant::now()));
        let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
        let client = || build(fault.clone(), clock.clone(), OutboxOptions::default());
        let (client, other) = (client(), client());
        other.table::<Desk>().create().await.unwrap();
        Self { fault, clock, client, other, handed_over: Arc::default() }
    }

    async fn with_call() -> Self {
        let office = Self::new().await;
        let mut egt = office.other.transaction();
        egt.insert(&desk(1, "11")).unwrap().emit(&Call { id: 1 }).unwrap();
        egt.commit().await.unwrap();
        office
    }

    /// A worker whose handler counts each message and then takes that time.
    fn worker(&self, client: &Client, lease: Duration, time: Duration) -> Worker {
        let count = self.handed_over.clone();
        client.worker().lease(lease).on(move |_, _: Call| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                sleep(time).await;
                Ok(())
            }
        })
    }

    fn handed_over(&self) -> u32 {
        self.handed_over.load(Ordering::SeqCst)
    }

    /// Drains another worker once a second.
    async fn drain_others(&self, from: u64, to: u64) {
        let other = self.worker(&self.other, seconds(60), Duration::ZERO);
        sleep(seconds(from)).await;
        for _ in from..to {
            other.drain().await.unwrap();
            sleep(seconds(1)).await;
        }
    }
}

/// A lease whose take was slow is renewed before another worker may take the message.
#[tokio::test(start_paused = true)]
async fn a_slow_take_is_renewed_in_time() {
    let office = Office::with_call().await;
    office.fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(seconds(40)));
    let slow = office.worker(&office.client, seconds(60), seconds(35));
    let (drained, ()) = tokio::join!(slow.drain(), office.drain_others(41, 74));
    drained.unwrap();
    let count = office.handed_over();
    assert_eq!(count, 1, "the message was handed over {count} times");
}

/// A handler that has the time outlives its first lease.
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed() {
    let office = Office::with_call().await;
    let slow = office.worker(&office.client, seconds(10), seconds(60));
    let slow = slow.handler_time(seconds(100));
    let (drained, ()) = tokio::join!(slow.drain(), office.drain_others(1, 59));
    let (applied, count) = (drained.unwrap().applied, office.handed_over());
    assert_eq!((applied, count), (1, 1), "{applied} of {count} handlers ended");
}

/// A worker that stops leaves its messages to others at once.
#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back() {
    let office = Office::with_call().await;
    let stopped = office.worker(&office.client, seconds(10), seconds(8));
    stopped.stop_timeout(seconds(3)).run(sleep(seconds(2))).await;
    let other = office.worker(&office.other, seconds(10), Duration::ZERO);
    let applied = other.drain().await.unwrap().applied;
    assert_eq!(applied, 1, "the message is still leased");
}

/// The receipts of a message go when nobody can deliver it any more.
#[tokio::test(start_paused = true)]
async fn receipts_go_with_their_message() {
    let world = World::left_to_workers().await;
    let mut egt = world.staff.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Call { id: 2 }).unwrap();
    egt.commit().await.unwrap();
    let client = build(world.fault.clone(), world.clock.clone(), OutboxOptions::default());
    let worker = client.worker().on(|cx, message: Call| async move {
        let desks = cx.client().table::<Desk>();
        drop(desks.create().await);
        let mut egt = desks.transaction();
        egt.insert(&desk(message.id, "11")).unwrap();
        cx.once(egt).await?;
        Ok(())
    });
    let worker = worker.with::<crate::fixture::Employee>();
    worker.drain().await.unwrap();
    assert!(world.rows("Desks", "Kiel").await.iter().any(|key| key.starts_with("~e4_")));
    for _ in 0..2 {
        world.later(OutboxOptions::WRITE_DEADLINE);
        worker.drain().await.unwrap();
    }
    let rows = world.rows("Desks", "Kiel").await;
    assert!(!rows.iter().any(|key| key.starts_with("~e4_")), "{rows:?}");
}

/// A queue is received from all of its shards.
#[tokio::test(start_paused = true)]
async fn every_shard_is_received() {
    let office = Office::new().await;
    let queue = office.client.table_queue("calls").shards(4);
    for number in 0..12 {
        queue.send(&format!("{number}"), Duration::ZERO).await.unwrap();
    }
    let received = queue.receive(32, seconds(30)).await.unwrap().len();
    assert_eq!(received, 12, "{received} of 12 are received");
}

/// A receiver holds a message from before its request, not from the answer.
#[tokio::test(start_paused = true)]
async fn a_receipt_counts_from_its_request() {
    let office = Office::new().await;
    let queue = office.client.table_queue("calls");
    queue.send("1", Duration::ZERO).await.unwrap();
    office.fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(seconds(20)));
    let began = Instant::now();
    let received = queue.receive(1, seconds(30)).await.unwrap();
    let held = received[0].until() - began;
    assert!(held <= seconds(30), "the message is held for {held:?}");
}

/// Each receipt of a message counts.
#[tokio::test(start_paused = true)]
async fn receipts_are_counted() {
    let office = Office::new().await;
    let queue = office.client.table_queue("calls");
    queue.send("1", Duration::ZERO).await.unwrap();
    let mut count = 0;
    for _ in 0..2 {
        count = queue.receive(1, seconds(5)).await.unwrap()[0].dequeue_count();
        sleep(seconds(6)).await;
    }
    assert_eq!(count, 2, "{count} receipts are counted");
}

/// A receiver that loses a message to another takes others of those that it found.
#[tokio::test(start_paused = true)]
async fn a_lost_message_ends_no_receipt() {
    let office = Office::new().await;
    let other = office.other.table_queue("calls");
    for number in 0..8 {
        other.send(&format!("{number}"), Duration::ZERO).await.unwrap();
    }
    let store = Hooked::before(office.fault.clone(), |_| true, async move {
        assert_eq!(other.receive(1, seconds(30)).await.unwrap().len(), 1);
    });
    let client = build(store, office.clock.clone(), OutboxOptions::default());
    let received = client.table_queue("calls").receive(8, seconds(30)).await;
    let count = received.map_or(0, |received| received.len());
    assert!(count > 0, "none of seven visible messages is received");
}

/// After a lost answer, a receiver gets only what it took itself.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_takes_nothing_of_others() {
    let office = Office::new().await;
    let other = office.other.table_queue("calls");
    other.send("1", Duration::ZERO).await.unwrap();
    let store = Hooked::before(office.fault.clone(), |_| true, async move {
        assert_eq!(other.receive(1, seconds(30)).await.unwrap().len(), 1);
    });
    let store = store.failing(Error::new(ErrorKind::Ambiguous, "connection lost"));
    let client = build(store, office.clock.clone(), OutboxOptions::default());
    let received = client.table_queue("calls").receive(1, seconds(30)).await;
    let count = received.map_or(0, |received| received.len());
    assert_eq!(count, 0, "two receivers have one message");
}

/// A message whose lease ended before the answer came is not handled.
#[tokio::test(start_paused = true)]
async fn a_late_receipt_is_not_handled() {
    let office = Office::new().await;
    let queue = office.client.queue("calls");
    queue.send(&Call { id: 1 }).await.unwrap();
    office.fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(seconds(20)));
    let worker = office.worker(&office.client, seconds(10), seconds(5)).queue(&queue);
    worker.drain().await.unwrap();
    // The store hides the message from when the request came.
    sleep(seconds(11)).await;
    worker.drain().await.unwrap();
    let count = office.handed_over();
    assert_eq!(count, 1, "the handler was called {count} times");
}

/// A message that a worker gives back is as good as before.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_given_back_was_not_tried() {
    let office = Office::new().await;
    let options = OutboxOptions::default().poison_after(1);
    let client = || build(office.fault.clone(), office.clock.clone(), options.clone());
    let (stopping, other) = (client(), client());
    let queue = stopping.queue("calls");
    queue.send(&Call { id: 1 }).await.unwrap();
    let worker = office.worker(&stopping, seconds(10), seconds(8)).queue(&queue);
    worker.stop_timeout(seconds(3)).run(sleep(seconds(2))).await;
    // The other client knows the store's time to the second.
    sleep(seconds(1)).await;
    let worker = office.worker(&other, seconds(10), Duration::ZERO).queue(&other.queue("calls"));
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.poisoned), (1, 0), "{stats:?}");
}
