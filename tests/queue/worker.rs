//! Tests workers on queues: deliveries, effects that take place once, poison, unknown types.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{
    Context, Queue,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};
use serde::{Deserialize, Serialize};

use crate::fixture::{MINUTE, World};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Welcome", version = 2)]
pub(crate) struct Welcome {
    pub(crate) id: u32,
    #[serde(default)]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Farewell", version = 1)]
struct Farewell {
    pub(crate) id: u32,
}

#[derive(Debug, TableEntity)]
#[table(name = "Visits", partition_key = "{id:06}", row_key = "count")]
pub(crate) struct Visits {
    pub(crate) id: u32,
    pub(crate) count: i64,
}

pub(crate) async fn visit(cx: &Context, id: u32) -> Result<bool, Error> {
    let visits = cx.client().table::<Visits>();
    let mut egt = visits.transaction();
    match visits.get(Visits::primary().id(id)).await? {
        Some(mut stored) => {
            stored.count += 1;
            egt.replace(&stored)?;
        }
        None => {
            egt.insert(&Visits { id, count: 1 })?;
        }
    }
    cx.once(egt).await
}

pub(crate) async fn visits(client: &Client, id: u32) -> i64 {
    let visits = client.table::<Visits>().get(Visits::primary().id(id)).await.unwrap();
    visits.map_or(0, |visits| visits.count)
}

async fn world() -> (World, Client, MessageQueue) {
    let world = World::new();
    let client = world.client(0);
    client.table::<Visits>().create().await.unwrap();
    let queue = client.queue("letters");
    (world, client, queue)
}

#[tokio::test]
async fn a_message_is_handed_over_and_deleted() {
    let (world, client, queue) = world().await;
    let id = queue.send(&Welcome { id: 1, number: Some(u64::MAX) }).await.unwrap();
    let worker = client.worker().queue(&queue).on(move |cx, message: Welcome| {
        let id = id.clone();
        async move {
            assert_eq!((cx.message_id(), cx.attempts()), (id.as_str(), 1));
            assert_eq!((message.id, message.number), (1, Some(u64::MAX)));
            Ok(())
        }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.received, stats.poisoned), (1, 1, 0));
    world.pass(MINUTE * 5);
    assert_eq!(worker.drain().await.unwrap().received, 1);
}

#[tokio::test]
async fn an_effect_takes_place_once_however_often_the_message_comes() {
    let (world, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let worker = client.worker().queue(&queue).on(move |cx, message: Welcome| {
        let seen = seen.clone();
        async move {
            let is_first = visit(&cx, message.id).await?;
            let call = seen.fetch_add(1, Ordering::SeqCst);
            assert_eq!(is_first, call == 0);
            if call < 2 { Err("the worker died".into()) } else { Ok(()) }
        }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.retried), (1, 2));
    assert_eq!((calls.load(Ordering::SeqCst), visits(&client, 1).await), (3, 1));
    // The message stays, as done, until nobody can hand it over any more; then its receipt goes.
    let rows = async |table: &str, partition: &str| {
        let rows = client.dynamic(table).query(Keys::partition(partition));
        let rows = rows.collect().await.unwrap();
        rows.iter().map(|row| row.row_key().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows("Visits", "000001").await.len(), 2);
    world.pass(MINUTE * 4);
    worker.drain().await.unwrap();
    assert_eq!(rows("Visits", "000001").await.len(), 2);
    world.pass(MINUTE);
    worker.drain().await.unwrap();
    assert_eq!(rows("Visits", "000001").await, ["count"]);
    assert!(rows("EntableQueues", "letters_00").await.is_empty());
    assert_eq!(visits(&client, 1).await, 1);
}

/// The timers' clock stands still while the machine is suspended: by the wall clock, another worker may have
/// had the message for hours.
#[tokio::test(start_paused = true)]
async fn no_handler_is_called_for_a_message_that_was_received_before_the_machine_was_suspended() {
    let (world, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let seen = attempts.clone();
    let worker = client.worker().queue(&queue).on(move |cx: Context, _: Welcome| {
        seen.lock().unwrap().push(cx.attempts());
        async { Ok(()) }
    });
    world.fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(MINUTE / 30));
    let suspended = async {
        tokio::time::sleep(MINUTE / 60).await;
        world.pass(MINUTE * 300);
    };
    let (drained, ()) = tokio::join!(worker.drain(), suspended);
    drained.unwrap();
    assert_eq!((world.fault.pending(), attempts.lock().unwrap().len()), (0, 0));
    // The store hid the message from the moment on at which the delayed request arrived.
    world.pass(MINUTE);
    worker.drain().await.unwrap();
    assert_eq!(*attempts.lock().unwrap(), [2], "the second receipt is in time");
}

#[tokio::test]
async fn poison_goes_aside_after_some_deliveries() {
    let (_, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    queue.port().send("no message at all", Duration::ZERO).await.unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let worker = client.worker().queue(&queue).on(move |_, _: Welcome| {
        seen.fetch_add(1, Ordering::SeqCst);
        async { Err("it is down".into()) }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.retried, calls.load(Ordering::SeqCst)), (1, 4, 5));
    let poison = queue.poisoned(10).await.unwrap();
    assert_eq!((poison.len(), poison[0].reason()), (1, Some("it is down")));
    assert_eq!(poison[0].message().as_deref(), Some("Welcome"));
    queue.requeue(&poison[0]).await.unwrap();
    let worker = client.worker().queue(&queue).on(|cx, message: Welcome| async move {
        assert_eq!(cx.attempts(), 1);
        visit(&cx, message.id).await?;
        Ok(())
    });
    worker.drain().await.unwrap();
    assert_eq!(visits(&client, 1).await, 1);
}

/// A worker that dies with its message never says that it failed.
#[tokio::test]
async fn a_message_that_kills_its_workers_is_poison_too() {
    let (world, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    for _ in 0..5 {
        assert_eq!(queue.port().receive(1, MINUTE).await.unwrap().len(), 1);
        world.pass(MINUTE);
    }
    let worker = client.worker().queue(&queue).on(|_, _: Welcome| async { Ok(()) });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.applied), (1, 0));
}

#[tokio::test]
async fn a_type_that_nobody_knows_waits_and_blocks_nobody() {
    let (world, client, queue) = world().await;
    for id in 0..40 {
        queue.send(&Farewell { id }).await.unwrap();
    }
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    let worker = client.worker().queue(&queue).on(|_, _: Welcome| async { Ok(()) });
    for _ in 0..8 {
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.applied, stats.unknown, stats.poisoned), (1, 40, 0));
        world.pass(MINUTE);
    }
    // However often it was met by those who do not know it, it is nobody's failure.
    let other = client.worker().queue(&queue).on(|cx, _: Farewell| async move {
        assert_eq!(cx.attempts(), 1);
        Ok(())
    });
    let stats = other.drain().await.unwrap();
    assert_eq!((stats.applied, stats.poisoned, stats.unknown), (40, 0, 0));
}

#[tokio::test]
async fn a_later_version_waits_for_its_program() {
    let (_, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    #[derive(Debug, Serialize, Deserialize, Message)]
    #[table(name = "Welcome", version = 1)]
    struct Older {
        id: u32,
    }
    let older = client.worker().queue(&queue).on(|_, _: Older| async { Ok(()) });
    let stats = older.drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied), (1, 0));
}

#[tokio::test]
async fn another_programs_text_needs_no_id() {
    let (_, client, queue) = world().await;
    let text = r#"{ "type": "Welcome", "body": {"id": 7}, "trace": "abc" }"#;
    queue.port().send(text, Duration::ZERO).await.unwrap();
    let worker = client.worker().queue(&queue).on(|cx, message: Welcome| async move {
        visit(&cx, message.id).await?;
        Ok(())
    });
    assert_eq!(worker.drain().await.unwrap().applied, 1);
    assert_eq!(visits(&client, 7).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_at_its_lease() {
    let (_, client, queue) = world().await;
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    let worker = client.worker().lease(MINUTE).queue(&queue).on(|_, _: Welcome| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.retried), (1, 4));
    let poison = queue.poisoned(1).await.unwrap();
    assert!(poison[0].reason().unwrap().contains("lease"), "{:?}", poison[0].reason());
}

/// No more at once than was said, and a stop drops what is under way.
#[tokio::test(start_paused = true)]
async fn run_is_bounded_and_stops() {
    let (_, client, queue) = world().await;
    for id in 0..30 {
        queue.send(&Welcome { id, number: None }).await.unwrap();
    }
    let (busy, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, peak) = (busy.clone(), most.clone());
    let worker = client.worker().concurrency(4).queue(&queue);
    let worker = worker.on(move |_, message: Welcome| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let time = Duration::from_millis(if message.id == 29 { 50_000 } else { 100 });
            tokio::time::sleep(time).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    worker.run(tokio::time::sleep(Duration::from_secs(20))).await;
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(worker.stats().applied, 29, "a slow one holds nobody up");
    assert_eq!(queue.port().receive(32, MINUTE).await.unwrap().len(), 0, "it is somebody's still");
}
