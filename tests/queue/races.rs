//! Tests handlers that race: the loser of a race is finished in the end, and is no poison.

use std::time::Duration;

use entable::{
    backend::{Backend, Embedded, Memory},
    prelude::*,
};

use crate::{
    fixture::World,
    worker::{Visits, Welcome, visit, visits},
};

const MESSAGES: i64 = 12;

async fn on_one_row(client: &Client) -> MessageQueue {
    client.table::<Visits>().create().await.unwrap();
    client.table::<Visits>().insert(&Visits { id: 1, count: 0 }).await.unwrap();
    let queue = client.queue("letters");
    for number in 0..MESSAGES as u64 {
        queue.send(&Welcome { id: 1, number: Some(number) }).await.unwrap();
    }
    queue
}

fn counting(client: &Client, queue: &MessageQueue) -> entable::Worker {
    client.worker().queue(queue).on(|cx, message: Welcome| async move {
        visit(&cx, message.id).await?;
        Ok(())
    })
}

async fn drained(backend: impl Backend) {
    let client = Client::builder().backend(backend).build().unwrap();
    let queue = on_one_row(&client).await;
    let stats = counting(&client, &queue).drain().await.unwrap();
    assert_eq!((stats.applied, stats.poisoned), (MESSAGES as u64, 0), "{stats:?}");
    assert_eq!(visits(&client, 1).await, MESSAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn drain_counts_every_message_on_one_row() {
    let directory = tempfile::tempdir().unwrap();
    drained(Embedded::open(directory.path().join("races.db")).unwrap()).await;
    drained(Memory::new()).await;
}

/// A running worker waits a little longer after each lost race.
#[tokio::test(start_paused = true)]
async fn run_counts_every_message_on_one_row() {
    let world = World::new();
    let client = world.client(0);
    let queue = on_one_row(&client).await;
    let worker = counting(&client, &queue).interval(Duration::from_secs(1));
    let stop = async {
        for _ in 0..900 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.pass(Duration::from_secs(1));
        }
    };
    worker.run(stop).await;
    assert_eq!(visits(&client, 1).await, MESSAGES);
    assert_eq!(worker.stats().poisoned, 0);
    assert!(queue.poisoned(32).await.unwrap().is_empty());
}

/// A message that always loses its race is the error of a drain, in bounded time, and no poison.
#[tokio::test(start_paused = true)]
async fn drain_returns_what_never_passes() {
    let world = World::new();
    let client = world.client(0);
    let queue = client.queue("letters");
    queue.send(&Welcome { id: 1, number: None }).await.unwrap();
    let worker = client.worker().queue(&queue).on(|_, _: Welcome| async {
        Err(Error::new(ErrorKind::Throttled, "the store is busy").into())
    });
    let begun = tokio::time::Instant::now();
    let error = worker.drain().await.unwrap_err();
    assert!(error.is_throttled(), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(worker.stats().received < 30, "{:?}", worker.stats());
    assert_eq!(worker.stats().poisoned, 0);
    // Nor does a worker that runs ask for it all the time.
    let stop = async {
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.pass(Duration::from_secs(1));
        }
    };
    let before = worker.stats().received;
    worker.run(stop).await;
    assert!(worker.stats().received - before < 20, "{:?}", worker.stats());
    assert!(queue.poisoned(1).await.unwrap().is_empty());
}
