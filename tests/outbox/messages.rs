//! Tests messages: stored with a change, delivered at least once, effects once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{Context, OutboxOptions, prelude::*};
use serde::{Deserialize, Serialize};

use crate::fixture::{Employee, World, employee};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Welcome", version = 2)]
struct Welcome {
    id: u32,
}

async fn emit(world: &World, id: u32) {
    let mut egt = world.client.transaction();
    egt.insert(&employee(id)).unwrap().emit(&Welcome { id }).unwrap();
    egt.commit().await.unwrap().wait_for_copies().await.unwrap();
}

/// Counts a visit of the employee who is welcomed, in another partition.
async fn visit(context: &Context, id: u32) -> Result<bool, Error> {
    let table = context.client().table::<Employee>();
    let point = Employee::primary().department("Visits").id(id);
    let mut egt = table.transaction();
    match table.get(point).await? {
        Some(mut stored) => {
            stored.visits += 1;
            egt.replace(&stored)?;
        }
        None => {
            let one = Employee { department: "Visits".into(), visits: 1, ..employee(id) };
            egt.insert(&one)?;
        }
    }
    context.once(egt).await
}

async fn visits(world: &World, id: u32) -> i64 {
    let point = Employee::primary().department("Visits").id(id);
    world.staff.get(point).await.unwrap().map_or(0, |stored| stored.visits)
}

#[tokio::test]
async fn a_message_is_stored_with_the_change_and_handed_over() {
    let world = World::new().await;
    emit(&world, 1).await;
    let seen = Arc::new(AtomicU32::new(0));
    let counter = seen.clone();
    let worker = world.client.worker().on(move |_, message: Welcome| {
        let counter = counter.clone();
        async move {
            counter.fetch_add(message.id, Ordering::SeqCst);
            Ok(())
        }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, seen.load(Ordering::SeqCst)), (0, 1));
    worker.drain().await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn a_change_that_fails_stores_no_message() {
    let world = World::new().await;
    emit(&world, 1).await;
    let mut egt = world.client.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Welcome { id: 9 }).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_conflict() && error.failed_index() == Some(0), "{error}");
    assert_eq!(world.open().await.len(), 1);
}

#[tokio::test]
async fn an_effect_takes_place_once_however_often_the_message_comes() {
    let world = World::new().await;
    emit(&world, 1).await;
    let failed = Arc::new(AtomicU32::new(0));
    let counter = failed.clone();
    let worker = world.client.worker().on(move |context, message: Welcome| {
        let counter = counter.clone();
        async move {
            let first = visit(&context, message.id).await?;
            assert_eq!(first, context.attempts() == 1);
            // The effect is there, and the handler dies all the same.
            match counter.fetch_add(1, Ordering::SeqCst) {
                0 => Err("no reason".into()),
                1 => panic!("at the wrong time"),
                _ => Ok(()),
            }
        }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!(visits(&world, 1).await, 1);
    assert_eq!((stats.retried, stats.waiting), (2, 1));
    // The receipt goes when nobody can hand the message over any more.
    let receipts = |rows: Vec<String>| rows.iter().filter(|key| key.starts_with("~e4_")).count();
    assert_eq!(receipts(world.rows("Staff", "Visits").await), 1);
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    assert_eq!(receipts(world.rows("Staff", "Visits").await), 0);
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn several_workers_have_one_effect() {
    let world = World::new().await;
    for id in 1..=10 {
        emit(&world, id).await;
    }
    let workers = [1, 2, 3].map(|_| {
        let client = world.other_client();
        client.worker().on(|context, message: Welcome| async move {
            visit(&context, message.id).await?;
            Ok(())
        })
    });
    let [a, b, c] = &workers;
    let (a, b, c) = tokio::join!(a.drain(), b.drain(), c.drain());
    assert!([a, b, c].iter().all(Result::is_ok));
    for id in 1..=10 {
        assert_eq!(visits(&world, id).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_bounded_by_its_lease() {
    let world = World::new().await;
    emit(&world, 1).await;
    let worker = world
        .client
        .worker()
        .lease(Duration::from_secs(5))
        .on(|_, _: Welcome| std::future::pending());
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.poisoned), (0, 1));
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(poisoned[0].message(), Some("Welcome"));
    assert!(poisoned[0].error.contains("lease of 5s"), "{}", poisoned[0].error);
}

#[tokio::test]
async fn a_message_that_nobody_handles_waits_and_is_counted() {
    let world = World::new().await;
    emit(&world, 1).await;
    assert_eq!(world.client.worker().drain().await.unwrap().unknown, 1);

    /// The message as an older program knows it.
    #[derive(Debug, Serialize, Deserialize, Message)]
    #[table(name = "Welcome", version = 1)]
    struct Older {
        id: u32,
    }
    let older = world.client.worker().on(|_, _: Older| async { Ok(()) });
    assert_eq!(older.drain().await.unwrap().unknown, 1);
    assert_eq!(world.open().await.len(), 1);
    let worker = world.client.worker().on(|_, _: Welcome| async { Ok(()) });
    assert_eq!(worker.drain().await.unwrap().unknown, 0);
    assert!(world.open().await.is_empty());
}

#[tokio::test]
async fn poison_is_put_aside_and_can_be_put_back() {
    let world = World::new().await;
    emit(&world, 1).await;
    let worker = world.client.worker().on(|_, _: Welcome| async { Err("it is down".into()) });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.poisoned, stats.retried), (0, 1, 4));
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!((poisoned.len(), poisoned[0].error.as_str()), (1, "it is down"));
    assert!(world.open().await.is_empty());
    worker.requeue(&poisoned[0]).await.unwrap();
    let worker = world.client.worker().on(|context, message: Welcome| async move {
        visit(&context, message.id).await?;
        Ok(())
    });
    worker.drain().await.unwrap();
    assert_eq!(visits(&world, 1).await, 1);
    assert!(worker.poisoned().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_message_alone_is_told_its_partition() {
    let world = World::new().await;
    let mut egt = world.client.transaction();
    egt.emit(&Welcome { id: 1 }).unwrap();
    assert!(egt.commit().await.unwrap_err().is_invalid());
    let mut egt = world.staff.transaction();
    egt.in_partition("Sales").unwrap().emit(&Welcome { id: 1 }).unwrap();
    egt.commit().await.unwrap();
    assert_eq!(world.open().await.len(), 1);
}

/// An effect that took place before its handler failed leaves nothing behind, though the handler
/// does not ask for it again.
#[tokio::test]
async fn the_receipt_of_an_earlier_try_goes_too() {
    let world = World::new().await;
    emit(&world, 1).await;
    let worker = world.client.worker().on(|cx, message: Welcome| async move {
        if cx.attempts() > 1 {
            return Ok(());
        }
        visit(&cx, message.id).await?;
        Err("the worker died".into())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.retried), (1, 1), "{stats:?}");
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    assert_eq!(visits(&world, 1).await, 1);
    let left = world.rows("Staff", "Visits").await;
    assert!(!left.iter().any(|key| key.starts_with("~e4_")), "{left:?}");
}

/// Where case does not count, both names lead to one partition with one receipt.
#[tokio::test]
async fn a_second_effect_under_another_case_of_the_tables_name_is_refused() {
    let world = World::new().await;
    emit(&world, 1).await;
    let seen = Arc::new(AtomicU32::new(0));
    let counter = seen.clone();
    let worker = world.client.worker().on(move |context: Context, message: Welcome| {
        let counter = counter.clone();
        async move {
            for (table, id) in [("Staff", 10), ("sTAFF", 11)] {
                let mut egt = context.client().table_named::<Employee>(table).transaction();
                let department = "Visits".into();
                egt.insert(&Employee { department, ..employee(message.id + id) })?;
                match context.once(egt).await {
                    Ok(is_first) => assert!(is_first && id == 10, "{table}: {is_first}"),
                    Err(error) => assert!(error.is_invalid() && id == 11, "{error}"),
                }
                counter.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }
    });
    worker.drain().await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}

/// The number of partitions with effects that a message can name is limited: one more is refused before its effect.
#[tokio::test(start_paused = true)]
async fn an_effect_that_cannot_be_named_is_refused() {
    let world = World::new().await;
    emit(&world, 1).await;
    let effects = Arc::new(AtomicU32::new(0));
    let counter = effects.clone();
    let worker = world.client.worker().on(move |context: Context, message: Welcome| {
        let counter = counter.clone();
        async move {
            let table = context.client().table::<Employee>();
            for number in 0..100 {
                let department = format!("{number:0400}");
                let mut egt = table.transaction();
                egt.insert(&Employee { department, ..employee(message.id) })?;
                if let Err(error) = context.once(egt).await {
                    assert!(error.is_too_large(), "{error}");
                    assert!(error.to_string().contains("too many partitions"), "{error}");
                    break;
                }
                counter.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }
    });
    let stats = worker.drain().await.unwrap();
    let count = effects.load(Ordering::SeqCst);
    assert!((70..90).contains(&count), "{count}");
    // The message is finished, and its receipts go with it.
    assert_eq!((stats.applied, stats.poisoned), (1, 0), "{stats:?}");
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    let rows = world.rows("Staff", &format!("{:0400}", 0)).await;
    assert!(!rows.iter().any(|key| key.starts_with("~e4_")), "{rows:?}");
}
