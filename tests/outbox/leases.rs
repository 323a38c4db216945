//! Tests leases of messages: they begin when a message is taken, and are renewed while it is handled.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Condition, Context, OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    prelude::*,
    queue::Queue,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};

use crate::{
    expiry::Key,
    fixture::{Employee, employee},
    timer_clock::TimerClock,
    weak_store::WeakStore,
};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Slow", version = 1)]
struct Slow {
    id: u32,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How often each message was handed over.
type Counts = Arc<Mutex<BTreeMap<u32, u32>>>;

struct World {
    fault: FaultInjector,
    clients: [Client; 2],
    counts: Counts,
}

impl World {
    async fn with_messages(count: u32) -> Self {
        Self::with_dates(count, Some).await
    }

    /// A world in which `date` changes the date in the store's answers, or removes it.
    async fn with_dates(count: u32, date: fn(Ticks) -> Option<Ticks>) -> Self {
        let clock = Arc::new(TimerClock(Instant::now()));
        let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
        let clients = [fault.clone(), fault.clone()].map(|store| {
            let store = WeakStore::telling(store, date);
            Client::builder().backend(store).clock(clock.clone()).build().unwrap()
        });
        clients[0].table::<Employee>().create().await.unwrap();
        for id in 0..count {
            let mut egt = clients[0].transaction();
            egt.insert(&employee(id)).unwrap().emit(&Slow { id }).unwrap();
            egt.commit().await.unwrap();
        }
        Self { fault, clients, counts: Arc::default() }
    }

    /// A worker whose handler counts each message and then takes that time.
    fn worker(&self, number: usize, time: Duration) -> entable::Worker {
        let counts = self.counts.clone();
        self.clients[number].worker().lease(seconds(10)).on(move |_: Context, message: Slow| {
            let counts = counts.clone();
            async move {
                *counts.lock().unwrap().entry(message.id).or_default() += 1;
                sleep(time).await;
                Ok(())
            }
        })
    }

    fn counted(&self) -> Vec<u32> {
        self.counts.lock().unwrap().values().copied().collect()
    }

    /// The messages that are left.
    async fn left(&self) -> usize {
        let rows = self.clients[0].dynamic("Staff").query(Keys::partition("Sales").prefix("~e3_"));
        rows.collect().await.unwrap().len()
    }
}

#[tokio::test(start_paused = true)]
async fn two_workers_share_many_messages() {
    let world = World::with_messages(200).await;
    let workers = [0, 1].map(|number| world.worker(number, seconds(8)));
    while world.left().await > 0 {
        let drained = tokio::join!(workers[0].drain(), workers[1].drain());
        drained.0.unwrap();
        drained.1.unwrap();
        sleep(seconds(1)).await;
    }
    assert_eq!(world.counted(), [1; 200]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_the_handler_runs() {
    let world = World::with_messages(1).await;
    // The answer to a renewal is lost once.
    let failure = || Error::new(ErrorKind::Ambiguous, "connection lost");
    let slow = world.worker(0, seconds(60)).handler_time(seconds(100));
    let other = world.worker(1, seconds(0));
    let (drained, ()) = tokio::join!(slow.drain(), async {
        for second in 0..60 {
            sleep(seconds(1)).await;
            if second == 12 {
                world.fault.inject(RequestKind::Apply, 0, InjectedFault::After(failure()));
            }
            other.drain().await.unwrap();
        }
    });
    assert_eq!(drained.unwrap().applied, 1);
    assert_eq!((world.counted(), world.left().await, world.fault.pending()), (vec![1], 0, 0));
}

/// The dates of answers are cut to seconds: a lease of 10 s that was taken at 0.9 s by a date of 0 s ends at
/// 10.9 s for its holder.
#[tokio::test(start_paused = true)]
async fn a_lease_does_not_end_in_the_store_before_it_ends_for_its_holder() {
    let cut = |date: Ticks| Ticks::new(date.get() - date.get() % 10_000_000);
    let world = World::with_dates(1, cut).await;
    let (slow, other) =
        (world.worker(0, Duration::from_millis(9_800)), world.worker(1, seconds(0)));
    sleep(Duration::from_millis(900)).await;
    let (drained, ()) = tokio::join!(slow.drain(), async {
        for _ in 0..98 {
            sleep(Duration::from_millis(100)).await;
            other.drain().await.unwrap();
        }
    });
    assert_eq!((drained.unwrap().applied, world.counted()), (1, vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_its_time_and_no_more() {
    let world = World::with_messages(1).await;
    let began = Instant::now();
    let slow = world.worker(0, seconds(600)).handler_time(seconds(25));
    let stop = async {
        while world.counted() != [2] {
            sleep(seconds(1)).await;
        }
    };
    tokio::select! { _ = slow.drain() => {}, () = stop => {} }
    let took = began.elapsed();
    assert!(took >= seconds(25) && took < seconds(40), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_message_is_another_workers_is_dropped() {
    let world = World::with_messages(1).await;
    let ended = Arc::new(Mutex::new(None));
    /// Notes when the handler was dropped.
    struct Dropped(Arc<Mutex<Option<Instant>>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = Some(Instant::now());
        }
    }
    let note = ended.clone();
    let worker = world.clients[0].worker().lease(seconds(10)).handler_time(seconds(600)).on(
        move |_: Context, _: Slow| {
            let dropped = Dropped(note.clone());
            async move {
                sleep(seconds(500)).await;
                drop(dropped);
                Ok(())
            }
        },
    );
    let began = Instant::now();
    let taken = async {
        sleep(seconds(3)).await;
        let rows = world.clients[1].dynamic("Staff");
        let found = rows.query(Keys::partition("Sales").prefix("~e3_")).collect().await.unwrap();
        rows.delete("Sales", found[0].row_key(), Condition::Any).await.unwrap();
    };
    let (drained, ()) = tokio::join!(worker.drain(), taken);
    drained.unwrap();
    assert!(ended.lock().unwrap().unwrap() - began <= seconds(10));
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_queues_message_is_renewed_too() {
    let world = World::with_messages(0).await;
    let queue = world.clients[0].queue("slow");
    queue.send(&Slow { id: 1 }).await.unwrap();
    let slow = world.worker(0, seconds(60)).handler_time(seconds(100)).queue(&queue);
    let other = world.worker(1, seconds(0)).queue(&world.clients[1].queue("slow"));
    let (drained, ()) = tokio::join!(slow.drain(), async {
        for _ in 0..60 {
            sleep(seconds(1)).await;
            other.drain().await.unwrap();
        }
    });
    drained.unwrap();
    assert_eq!(world.counted(), [1]);
    assert!(queue.port().receive(1, seconds(5)).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_takes_nothing_new_and_lets_handlers_end() {
    let world = World::with_messages(20).await;
    let worker = world.worker(0, seconds(8)).stop_timeout(seconds(30));
    let began = Instant::now();
    worker.run(sleep(seconds(2))).await;
    assert_eq!(began.elapsed().as_secs(), 8);
    let begun = world.counted();
    assert!(!begun.is_empty() && begun.len() < 20, "{begun:?}");
    assert_eq!(world.left().await, 20 - begun.len());
    // A message that was not taken is free for another worker at once, and nothing comes twice.
    world.worker(1, seconds(0)).drain().await.unwrap();
    assert_eq!((world.left().await, world.counted()), (0, vec![1; 20]));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_gives_back_what_does_not_end() {
    let world = World::with_messages(3).await;
    let queue = world.clients[0].queue("slow");
    queue.send(&Slow { id: 9 }).await.unwrap();
    let worker = world.worker(0, seconds(8)).queue(&queue).stop_timeout(seconds(3));
    let began = Instant::now();
    worker.run(sleep(seconds(2))).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!((world.counted(), worker.stats().retried), (vec![1; 4], 0));
    // The leases of 10 s are not over yet.
    let other = world.worker(1, seconds(0)).queue(&queue);
    let stats = other.drain().await.unwrap();
    assert_eq!((stats.applied, world.left().await), (4, 0), "{stats:?}");
    assert_eq!(world.counted(), [2; 4]);
}

/// Without a time to stop, handlers are dropped and their leases run.
#[tokio::test(start_paused = true)]
async fn a_worker_without_a_time_to_stop_is_gone_at_once() {
    let world = World::with_messages(3).await;
    let began = Instant::now();
    world.worker(0, seconds(8)).run(sleep(seconds(2))).await;
    assert_eq!(began.elapsed().as_secs(), 2);
    world.worker(1, seconds(0)).drain().await.unwrap();
    assert_eq!((world.left().await, world.counted()), (3, vec![1; 3]));
}

#[tokio::test(start_paused = true)]
async fn times_may_be_as_long_as_a_duration_can_be() {
    let world = World::with_messages(2).await;
    let endless = world.worker(0, seconds(60)).handler_time(Duration::MAX);
    assert_eq!(endless.drain().await.unwrap().applied, 2);
    let world = World::with_messages(1).await;
    let endless = world.worker(0, seconds(60)).stop_timeout(Duration::MAX);
    let endless = endless.handler_time(Duration::MAX).interval(Duration::MAX);
    // The stop begins while the handler runs, which has all of the time.
    endless.run(sleep(seconds(30))).await;
    assert_eq!((world.counted(), world.left().await), (vec![1], 0));
}

#[tokio::test(start_paused = true)]
async fn times_of_the_outbox_may_be_as_long_as_a_duration_can_be() {
    let longest = Duration::MAX;
    let options = || OutboxOptions::default().background(0);
    for options in [
        options().grace(longest),
        options().close_idle_after(longest),
        options().claim_time(longest),
        options().write_deadline(longest),
        options()
            .write_deadline(longest)
            .claim_time(longest)
            .close_idle_after(longest)
            .grace(longest),
        options().write_deadline(longest).request_timeout(longest - seconds(100)),
    ] {
        let clock = Arc::new(TimerClock(Instant::now()));
        let store = Memory::with_clock(clock.clone());
        let builder = Client::builder().backend(store).clock(clock).outbox(options.clone());
        let client = builder.build().unwrap();
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        staff.insert(&employee(1)).await.unwrap();
        let worker = client.worker().lease(longest).on(|_, _: Slow| async { Ok(()) });
        let mut egt = client.transaction();
        egt.insert(&employee(2)).unwrap().emit(&Slow { id: 2 }).unwrap();
        egt.commit().await.unwrap();
        worker.drain().await.unwrap();
        let (worker, stop) = (worker.interval(seconds(1)), sleep(seconds(100)));
        worker.run(stop).await;
        let email = Employee::by_email().email("Jones1@contoso.com").department("Sales").id(1);
        assert!(staff.get(email).await.unwrap().is_some(), "{options:?}");
    }
}

/// An effect that begins within the lease and is sent after it could take place twice: another worker may
/// have had the message, and may have removed the receipt.
#[tokio::test(start_paused = true)]
async fn an_effect_that_is_held_up_past_the_lease_is_not_sent() {
    let world = World::with_messages(1).await;
    let effect = Arc::new(Mutex::new(None));
    let (kept, fault) = (effect.clone(), world.fault.clone());
    let worker = world.clients[0].worker().lease(seconds(10)).on(move |cx: Context, _: Slow| {
        let (kept, fault) = (kept.clone(), fault.clone());
        async move {
            fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(seconds(11)));
            *kept.lock().unwrap() = Some(tokio::spawn(async move {
                let mut egt = cx.client().transaction();
                egt.insert(&employee(7)).unwrap();
                cx.once(egt).await
            }));
            sleep(seconds(1)).await;
            assert_eq!(fault.pending(), 0, "the effect is on its way");
            Ok(())
        }
    });
    worker.drain().await.unwrap();
    let effect = effect.lock().unwrap().take().unwrap();
    let error = effect.await.unwrap().unwrap_err();
    assert!(error.is_contended() && error.to_string().contains("lease"), "{error}");
    assert!(
        world.clients[0]
            .table::<Employee>()
            .get(Employee::primary().department("Sales").id(7))
            .await
            .unwrap()
            .is_none()
    );
}

/// The timers' clock stands still while a machine is suspended: the lease ends by the wall clock, too.
#[tokio::test(start_paused = true)]
async fn no_effect_begins_after_a_lease_that_ended_while_the_machine_was_suspended() {
    let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
    let store = Memory::with_clock(clock.clone());
    let client = Client::builder().backend(store).clock(clock.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let queue = client.queue("slow");
    queue.send(&Slow { id: 8 }).await.unwrap();
    let mut egt = client.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Slow { id: 7 }).unwrap();
    egt.commit().await.unwrap();
    let worker = client.worker().queue(&queue).on(move |cx: Context, message: Slow| {
        let clock = clock.clone();
        async move {
            clock.advance(seconds(61));
            let mut egt = cx.client().transaction();
            egt.insert(&employee(message.id)).unwrap();
            let error = cx.once(egt).await.unwrap_err();
            assert!(error.is_contended(), "{error}");
            Err("no effect".into())
        }
    });
    worker.drain().await.unwrap();
    for id in [7, 8] {
        assert!(staff.get(Employee::primary().department("Sales").id(id)).await.unwrap().is_none());
    }
}

/// The marker of the entity's expiry is written after the machine slept, and its hour ends before the lease
/// does by the timers' clock. By the wall clock the lease is over.
#[tokio::test(start_paused = true)]
async fn an_effect_with_a_marker_is_not_sent_after_a_lease_that_ended_while_the_machine_was_suspended()
 {
    // 630_000_000_000_000_000 ticks are a full hour.
    let hour = 630_000_000_000_000_000 + 3600 * 10_000_000;
    let start = Ticks::new(hour - 390 * 10_000_000).unwrap();
    let clock = Arc::new(SteppedClock::new(start));
    let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(fault.clone()).clock(clock.clone()).build().unwrap();
    let keys = client.table::<Key>();
    keys.create().await.unwrap();
    client.table::<Employee>().create().await.unwrap();
    let mut egt = client.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Slow { id: 7 }).unwrap();
    egt.commit().await.unwrap();
    let until = OffsetDateTime::from(Ticks::new(hour - 1).unwrap());
    let key = Key { user: "ann".into(), id: 7, until, note: None };
    let effects = Arc::new(Mutex::new(Vec::new()));
    let (results, injector) = (effects.clone(), fault.clone());
    let worker = client.worker().lease(seconds(270)).on(move |cx: Context, _: Slow| {
        let (clock, fault, key) = (clock.clone(), injector.clone(), key.clone());
        let results = results.clone();
        async move {
            // The second time the message has no effect.
            if !results.lock().unwrap().is_empty() {
                return Ok(());
            }
            let mut egt = cx.client().transaction();
            egt.insert(&key)?;
            // The request for the store's time, which comes before the first marker.
            fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(seconds(2)));
            let suspended = async {
                sleep(seconds(1)).await;
                clock.advance(seconds(300));
                fault.pending()
            };
            let result = tokio::join!(cx.once(egt), suspended);
            results.lock().unwrap().push(result);
            Err("no effect".into())
        }
    });
    worker.drain().await.unwrap();
    let effects = std::mem::take(&mut *effects.lock().unwrap());
    let [(effect, 0)] = &effects[..] else { panic!("{effects:?}") };
    assert!(effect.as_ref().is_err_and(Error::is_contended), "{effect:?}");
    assert!(keys.get(Key::primary().user("ann").id(7)).await.unwrap().is_none());
}
