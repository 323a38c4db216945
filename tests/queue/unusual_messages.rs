//! Tests messages that are long, of other programs or later formats, or unreadable.

use std::time::Duration;

use entable::{Queue, prelude::*};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    fixture::{MINUTE, World},
    worker::{Visits, visit, visits},
};

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Letter", version = 1)]
struct Letter {
    text: String,
}

/// A message whose reading panics.
#[derive(Debug, Serialize)]
struct Mine;

impl<'de> Deserialize<'de> for Mine {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("the message explodes")
    }
}

impl Message for Mine {
    const NAME: &'static str = "Mine";
    const VERSION: u32 = 1;
}

/// The longest message that goes into the queue is one that workers can leave as often as they
/// have to.
#[tokio::test]
async fn the_longest_message_has_room_for_what_workers_note() {
    let world = World::new();
    let client = world.client(0);
    let queue = client.queue("letters");
    let mut length = 32_800;
    loop {
        match queue.send(&Letter { text: "x".repeat(length) }).await {
            Ok(_) => break,
            Err(error) => assert!(error.is_too_large(), "{error}"),
        }
        length -= 1;
    }
    assert!(length > 32_600, "{length}");
    let unknowing = client.worker().queue(&queue);
    for _ in 0..8 {
        let stats = unknowing.drain().await.unwrap();
        assert_eq!((stats.unknown, stats.failures), (1, 0), "{stats:?}");
        world.pass(MINUTE);
    }
    let worker = client.worker().queue(&queue).on(|cx, _: Letter| async move {
        assert_eq!(cx.attempts(), 1, "those who left it do not count");
        Ok(())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.poisoned), (1, 0), "{stats:?}");
}

/// A program that knows less leaves everything in its place.
#[tokio::test]
async fn members_that_a_program_does_not_know_are_kept() {
    let world = World::new();
    let client = world.client(0);
    let queue = client.queue("letters");
    let later = r#"{"format":2,"type":"Letter","by":{"trace":"4bf9"},"body":{"text":"a"}}"#;
    let other = r#"{"type":"Unheard","trace":[1,2.50]}"#;
    for text in [later, other] {
        queue.port().send(text, Duration::ZERO).await.unwrap();
    }
    let worker = client.worker().queue(&queue).on(|_, _: Letter| async { Ok(()) });
    assert_eq!(worker.drain().await.unwrap().unknown, 2);
    world.pass(MINUTE);
    let received = queue.port().receive(2, MINUTE).await.unwrap();
    let bodies: Vec<&str> = received.iter().map(|message| message.body()).collect();
    let has = |part: &str| bodies.iter().any(|body| body.contains(part));
    assert!(has(r#""by":{"trace":"4bf9"}"#) && has(r#""format":2"#), "{bodies:?}");
    assert!(has(r#""trace":[1,2.50]"#) && has(r#""skipped":1"#), "{bodies:?}");
}

/// Reading a message is the program's code as well, and takes no worker down.
#[tokio::test]
async fn a_message_that_panics_when_it_is_read_is_poison() {
    let client = World::new().client(0);
    let queue = client.queue("letters");
    // Another program sent it: `send` reads a message back.
    let mine = r#"{"id":"000000000000000000000001","type":"Mine","version":1,"body":null}"#;
    queue.port().send(mine, Duration::ZERO).await.unwrap();
    queue.send(&Letter { text: "hello".into() }).await.unwrap();
    let worker = client.worker().queue(&queue);
    let worker = worker.on(|_, _: Mine| async { Ok(()) }).on(|_, _: Letter| async { Ok(()) });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.poisoned), (1, 1), "{stats:?}");
    assert_eq!(queue.poisoned(1).await.unwrap()[0].reason(), Some("the handler panicked"));
}

/// A damaged row stops no other message, and is reported at last.
#[tokio::test]
async fn a_damaged_row_holds_nothing_up() {
    let world = World::new();
    let client = world.client(0);
    let queue = client.table_queue("letters").shards(2);
    queue.send("first", Duration::ZERO).await.unwrap();
    for shard in ["letters_00", "letters_01"] {
        let mut row = DynamicEntity::new(shard, "q_0000000000000000001_bad");
        row.set("Format", 1);
        row.set("DequeueCount", 0);
        client.dynamic("EntableQueues").insert(&row).await.unwrap();
    }
    for message in ["second", "third"] {
        queue.send(message, Duration::ZERO).await.unwrap();
    }
    let mut got = Vec::new();
    while got.len() < 3 {
        let received = queue.receive(1, MINUTE).await.unwrap();
        got.extend(received.iter().map(|message| message.body().to_owned()));
    }
    got.sort_unstable();
    assert_eq!(got, ["first", "second", "third"]);
    let error = queue.receive(32, MINUTE).await.unwrap_err();
    assert!(error.is_decode() && error.to_string().contains("bad"), "{error}");
}

/// Rows that this program can never take stay at the front of the queue, however many there are.
#[tokio::test]
async fn messages_behind_many_damaged_and_newer_rows_are_received() {
    let world = World::new();
    let client = world.client(0);
    let queue = client.table_queue("letters");
    queue.send("first", Duration::ZERO).await.unwrap();
    for at in 0..40 {
        let mut row = DynamicEntity::new("letters_00", format!("q_00000000000000000{at:02}_bad"));
        row.set("Format", 1 + at % 2);
        row.set("DequeueCount", 0);
        client.dynamic("EntableQueues").insert(&row).await.unwrap();
    }
    for page_rows in [None, Some(3)] {
        world.fault.shorten_pages(page_rows);
        queue.send("last", Duration::ZERO).await.unwrap();
        for _ in 0..2 {
            let received = queue.receive(1, MINUTE).await.unwrap();
            assert_eq!(received.len(), 1, "{page_rows:?}");
            queue.delete(&received[0]).await.unwrap();
            queue.send("next", Duration::ZERO).await.unwrap();
        }
        assert_eq!(
            queue.receive(32, MINUTE).await.unwrap().len(),
            if page_rows.is_none() { 2 } else { 1 }
        );
    }
    assert!(queue.receive(32, MINUTE).await.unwrap_err().is_decode());
}

/// A second effect in one partition would be taken for the first one.
#[tokio::test]
async fn a_second_effect_in_one_partition_is_refused() {
    let client = World::new().client(0);
    client.table::<Visits>().create().await.unwrap();
    let queue = client.queue("letters");
    queue.send(&Letter { text: "hello".into() }).await.unwrap();
    let worker = client.worker().queue(&queue).on(|cx, _: Letter| async move {
        visit(&cx, 1).await?;
        visit(&cx, 2).await?;
        visit(&cx, 1).await?;
        Ok(())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!(stats.poisoned, 1, "{stats:?}");
    let reason = queue.poisoned(1).await.unwrap()[0].reason().unwrap().to_owned();
    assert!(reason.contains("one effect per partition"), "{reason}");
    assert_eq!((visits(&client, 1).await, visits(&client, 2).await), (1, 1));
}

/// A lease that is shorter than a queue can hide a message is the handler's all the same.
#[tokio::test(start_paused = true)]
async fn a_short_lease_is_the_handlers() {
    let client = World::new().client(0);
    let queue = client.queue("letters");
    queue.send(&Letter { text: "hello".into() }).await.unwrap();
    let worker = client.worker().lease(Duration::from_millis(200)).queue(&queue);
    let worker = worker.on(|cx, _: Letter| async move {
        let time = if cx.attempts() == 1 { 500 } else { 100 };
        tokio::time::sleep(Duration::from_millis(time)).await;
        Ok(())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.retried, stats.poisoned), (1, 1, 0), "{stats:?}");
}
