//! Tests a queue in a table: requests, clocks that are hours off, lost answers.

use std::{sync::Arc, time::Duration};

use entable::{
    Queue,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use crate::fixture::{HOUR, MINUTE, Skewed, Undated, World, bodies};

#[tokio::test]
async fn hidden_rows_are_never_read_over() {
    let world = World::new();
    let queue = world.queue(0);
    for at in 0..20 {
        queue.send(&at.to_string(), Duration::ZERO).await.unwrap();
    }
    assert_eq!(queue.receive(18, MINUTE).await.unwrap().len(), 18);
    world.requests();
    let rest = queue.receive(32, MINUTE).await.unwrap();
    assert_eq!(rest.len(), 2);
    let requests = world.requests();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    // Those that are hidden are due a minute later.
    let bounds = "(RowKey ge 'q_') and (RowKey lt 'q_063800000000000";
    assert!(requests[0].contains(bounds), "{requests:#?}");
    assert!(requests[1].contains("Insert q_0638000000600000"), "{requests:#?}");
    assert!(queue.receive(32, MINUTE).await.unwrap().is_empty());
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn the_lease_passes_and_the_count_rises() {
    let world = World::new();
    let (queue, other) = (world.queue(0), world.queue(0));
    let id = queue.send("a", Duration::ZERO).await.unwrap();
    let first = queue.receive(1, MINUTE).await.unwrap();
    world.pass(MINUTE - Duration::from_secs(1));
    assert!(other.receive(1, MINUTE).await.unwrap().is_empty());
    world.pass(Duration::from_secs(1));
    let second = other.receive(1, MINUTE).await.unwrap();
    assert_eq!((second[0].id(), second[0].dequeue_count()), (id.as_str(), 2));
    // The first receiver gets `is_lease_lost`, and changes nothing.
    assert!(queue.delete(&first[0]).await.unwrap_err().is_lease_lost());
    assert!(queue.poison(&first[0], "why").await.unwrap_err().is_lease_lost());
    let mut late = first[0].clone();
    assert!(queue.extend(&mut late, MINUTE, Some("b")).await.unwrap_err().is_lease_lost());
    other.delete(&second[0]).await.unwrap();
    world.pass(MINUTE * 2);
    assert!(queue.receive(1, MINUTE).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_extended_stays_hidden() {
    let world = World::new();
    let queue = world.queue(0);
    queue.send("a", Duration::ZERO).await.unwrap();
    let mut received = queue.receive(1, MINUTE).await.unwrap();
    let old = received[0].clone();
    world.pass(MINUTE / 2);
    queue.extend(&mut received[0], MINUTE, Some("b")).await.unwrap();
    assert!(queue.delete(&old).await.unwrap_err().is_lease_lost());
    world.pass(MINUTE - Duration::from_secs(1));
    assert!(queue.receive(1, MINUTE).await.unwrap().is_empty());
    queue.extend(&mut received[0], Duration::ZERO, None).await.unwrap();
    let again = queue.receive(1, MINUTE).await.unwrap();
    assert_eq!((again[0].body(), again[0].dequeue_count()), ("b", 2));
}

#[tokio::test]
async fn a_clock_that_is_hours_off_neither_hides_nor_hands_over_twice() {
    for (sender, receiver, other) in
        [(3, 0, -3), (-3, 0, 3), (0, 3, -3), (0, -3, 3), (5, -5, 5), (-5, 5, -5)]
    {
        let world = World::new();
        let queues = [sender, receiver, other].map(|hours| world.queue(hours * HOUR));
        let [sender, receiver, other] = &queues;
        sender.send("now", Duration::ZERO).await.unwrap();
        sender.send("later", MINUTE).await.unwrap();
        let received = receiver.receive(32, MINUTE).await.unwrap();
        assert_eq!(bodies(&received), ["now"]);
        assert!(other.receive(32, MINUTE).await.unwrap().is_empty());
        world.pass(MINUTE);
        let received = other.receive(32, MINUTE * 2).await.unwrap();
        assert_eq!(bodies(&received), ["later", "now"]);
        world.pass(MINUTE);
        assert!(receiver.receive(32, MINUTE).await.unwrap().is_empty());
        for message in &received {
            other.delete(message).await.unwrap();
        }
        world.pass(MINUTE * 600);
        assert!(receiver.receive(32, MINUTE).await.unwrap().is_empty());
    }
}

/// A store that does not say what time it is: wrong clocks shift when a message is visible, and
/// none is lost.
#[tokio::test]
async fn without_a_date_a_message_is_late_and_not_lost() {
    let world = World::new();
    let silent = |seconds| {
        let clock = Arc::new(Skewed { clock: world.clock.clone(), seconds });
        let backend = Undated(world.memory.clone());
        Client::builder().backend(backend).clock(clock).build().unwrap().table_queue("letters")
    };
    let (fast, right) = (silent(3 * HOUR), silent(0));
    fast.send("a", Duration::ZERO).await.unwrap();
    assert!(right.receive(1, MINUTE).await.unwrap().is_empty());
    world.pass(MINUTE * 180);
    let received = right.receive(1, MINUTE).await.unwrap();
    assert_eq!(received.len(), 1);
    right.delete(&received[0]).await.unwrap();
}

/// A message that a slow clock left among the due rows is hidden by the store's own clock, and the
/// messages behind it are found.
#[tokio::test]
async fn what_a_slow_clock_hid_is_hidden() {
    let world = World::new();
    let (queue, slow) = (world.queue(0), world.queue(0));
    for at in 0..6 {
        queue.send(&format!("taken {at}"), Duration::ZERO).await.unwrap();
    }
    assert_eq!(slow.receive(6, MINUTE * 10).await.unwrap().len(), 6);
    // As if due by now: the rows of a receiver whose clock was wrong by ten minutes.
    let client = world.client(0);
    let rows = client.dynamic("EntableQueues");
    let found = rows.query(Keys::partition("letters_00")).collect().await.unwrap();
    for row in found {
        let id = row.row_key().rsplit('_').next().unwrap();
        let mut early = DynamicEntity::new("letters_00", format!("q_{:019}_{id}", 0));
        for (name, value) in row.properties().iter() {
            early.set(name, value.clone());
        }
        rows.insert(&early).await.unwrap();
        rows.delete_at("letters_00", row.row_key()).await.unwrap();
    }
    queue.send("free", Duration::ZERO).await.unwrap();
    let received = queue.receive(2, MINUTE).await.unwrap();
    assert_eq!(bodies(&received), ["free"]);
    queue.delete(&received[0]).await.unwrap();
    world.pass(MINUTE * 10);
    assert_eq!(queue.receive(32, MINUTE).await.unwrap().len(), 6);
}

fn lost() -> Error {
    Error::new(ErrorKind::Ambiguous, "the answer was lost")
}

#[tokio::test]
async fn a_lost_answer_is_looked_into() {
    for trouble in [InjectedFault::After as fn(Error) -> InjectedFault, InjectedFault::Before] {
        let world = World::new();
        let queue = world.queue(0);
        queue.send("first", Duration::ZERO).await.unwrap();
        let first = queue.receive(1, MINUTE).await.unwrap();
        queue.delete(&first[0]).await.unwrap();

        world.fault.inject(RequestKind::Apply, 0, trouble(lost()));
        queue.send("a", Duration::ZERO).await.unwrap();

        world.fault.inject(RequestKind::Apply, 0, trouble(lost()));
        let mut received = queue.receive(1, MINUTE).await.unwrap();
        if received.is_empty() {
            // It was not carried out, and nobody has the message.
            received = queue.receive(1, MINUTE).await.unwrap();
        }
        assert_eq!((received.len(), received[0].dequeue_count()), (1, 1));

        world.fault.inject(RequestKind::Apply, 0, trouble(lost()));
        queue.extend(&mut received[0], MINUTE, None).await.unwrap();

        world.fault.inject(RequestKind::Apply, 0, trouble(lost()));
        queue.delete(&received[0]).await.unwrap();
        world.pass(MINUTE * 5);
        assert!(queue.receive(32, MINUTE).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn poison_is_put_aside_in_its_partition_and_can_be_put_back() {
    let world = World::new();
    let queue = world.queue(0);
    let id = queue.send("a", Duration::ZERO).await.unwrap();
    let received = queue.receive(1, MINUTE).await.unwrap();
    world.requests();
    queue.poison(&received[0], "it is down").await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    world.pass(MINUTE * 5);
    assert!(queue.receive(1, MINUTE).await.unwrap().is_empty());
    let poison = queue.poisoned(10).await.unwrap();
    assert_eq!(poison.len(), 1);
    assert_eq!((poison[0].id(), poison[0].reason()), (id.as_str(), Some("it is down")));
    assert_eq!((poison[0].body(), poison[0].dequeue_count()), ("a", 1));
    queue.requeue(&poison[0]).await.unwrap();
    assert!(queue.requeue(&poison[0]).await.unwrap_err().is_not_found());
    assert!(queue.poisoned(10).await.unwrap().is_empty());
    let again = queue.receive(1, MINUTE).await.unwrap();
    assert_eq!((again[0].id(), again[0].dequeue_count()), (id.as_str(), 1));
}

#[tokio::test]
async fn shards_are_all_looked_at() {
    let world = World::new();
    let queue = world.queue(0).shards(5);
    for at in 0..30 {
        queue.send(&at.to_string(), Duration::ZERO).await.unwrap();
    }
    let mut all = 0;
    for _ in 0..20 {
        all += queue.receive(7, MINUTE).await.unwrap().len();
    }
    assert_eq!(all, 30);
}

#[tokio::test]
async fn receivers_that_race_lose_nothing_and_share_nothing() {
    let world = World::new();
    let queue = world.queue(0);
    for at in 0..96 {
        queue.send(&at.to_string(), Duration::ZERO).await.unwrap();
    }
    let mut all = Vec::new();
    while all.len() < 96 {
        let queues = [(); 6].map(|()| world.queue(0));
        let receive = queues.iter().map(|queue| queue.receive(32, MINUTE));
        for received in futures_util::future::join_all(receive).await {
            all.extend(received.unwrap().iter().map(|one| one.id().to_owned()));
        }
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 96);
}

#[tokio::test]
async fn what_no_queue_has_is_refused() {
    let world = World::new();
    let queue = world.queue(0);
    let long = "a".repeat(32_769);
    assert!(queue.send(&long, Duration::ZERO).await.unwrap_err().is_too_large());
    let week = Duration::from_secs(8 * 24 * 3600);
    assert!(queue.send("a", week).await.unwrap_err().is_invalid());
    assert!(queue.receive(1, week).await.unwrap_err().is_invalid());
    assert!(queue.receive(1, Duration::ZERO).await.unwrap_err().is_invalid());
    for name in ["ab", "Letters", "a_b", "-abc", "abc-", "a--b", "a'b", &"a".repeat(64)] {
        let queue = world.client(0).table_queue(name);
        assert!(queue.send("a", Duration::ZERO).await.unwrap_err().is_invalid(), "{name}");
    }
    assert_eq!(world.requests(), [""; 0]);
}
