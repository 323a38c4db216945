//! Counts the requests of writes of entities that expire, before and after the answer.

use std::{sync::Arc, time::Duration};

use entable::{
    Client, Clock, OutboxOptions, SteppedClock, Ticks,
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use time::OffsetDateTime;

const HOUR: Duration = Duration::from_secs(3600);

/// An entity with a value that is unique in its partition.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "s_{id:06}",
    expires = until,
    index(ByDevice, row_key = "d_{device}", unique)
)]
struct Session {
    user: String,
    id: u32,
    device: String,
    until: OffsetDateTime,
}

/// An entity with a value that is unique in another partition.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "p_{id:06}",
    expires = until,
    index(ByToken, partition_key = "t_{token}", row_key = "token", unique)
)]
struct Pass {
    user: String,
    id: u32,
    token: String,
    until: OffsetDateTime,
}

/// An entity without copies.
#[derive(Debug, Clone, TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "k_{id:06}", expires = until)]
struct Key {
    user: String,
    id: u32,
    until: OffsetDateTime,
}

/// A write, the requests before its answer, and those after it.
type Line = (&'static str, usize, usize);

struct Store {
    clock: Arc<SteppedClock>,
    recorder: Recorder,
    client: Client,
    lines: Vec<Line>,
}

impl Store {
    async fn record(&mut self, write: &'static str) {
        let before = self.recorder.take().len();
        self.client.wait_for_copies().await;
        let after = self.recorder.take().len();
        self.lines.push((write, before, after));
    }

    fn until(&self, left: Duration) -> OffsetDateTime {
        OffsetDateTime::from(self.clock.now()) + left
    }

    fn key(&self, user: &str, id: u32) -> Key {
        Key { user: user.into(), id, until: self.until(HOUR) }
    }

    fn session(&self, id: u32, device: &str) -> Session {
        Session { user: "don".into(), id, device: device.into(), until: self.until(HOUR) }
    }

    fn pass(&self, id: u32, token: &str) -> Pass {
        Pass { user: "don".into(), id, token: token.into(), until: self.until(HOUR) }
    }

    /// Writes what the lines do not count: the markers of the hour.
    async fn pass_an_hour(&mut self) {
        self.clock.advance(HOUR);
        let keys: Table<Key> = self.client.table();
        keys.insert_or_replace(&self.key("don", 999)).await.unwrap();
        let (sessions, passes) = (self.client.table::<Session>(), self.client.table::<Pass>());
        sessions.insert_or_replace(&self.session(999, "own")).await.unwrap();
        passes.insert_or_replace(&self.pass(999, "own")).await.unwrap();
        self.client.wait_for_copies().await;
        self.recorder.clear();
    }
}

async fn measured() -> Vec<Line> {
    let clock = Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()));
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let outbox = OutboxOptions::default().copies_before_answer(false);
    let builder = Client::builder().backend(recorder.clone()).clock(clock.clone());
    let client = builder.outbox(outbox).build().unwrap();
    let keys = client.table::<Key>();
    let (sessions, passes) = (client.table::<Session>(), client.table::<Pass>());
    keys.create().await.unwrap();
    let mut store = Store { clock, recorder, client: client.clone(), lines: Vec::new() };
    sessions.insert(&store.session(1, "a")).await.unwrap();
    passes.insert(&store.pass(1, "a")).await.unwrap();
    client.wait_for_copies().await;
    store.pass_an_hour().await;

    keys.insert(&store.key("don", 1)).await.unwrap();
    store.record("`insert`, the hour's marker is written").await;
    keys.insert(&store.key("eve", 1)).await.unwrap();
    store.record("`insert`, the first of its partition and hour").await;
    store.pass_an_hour().await;
    keys.insert(&store.key("don", 1)).await.unwrap();
    store.record("`insert`, an expired entity has its key").await;
    sessions.insert(&store.session(2, "b")).await.unwrap();
    store.record("`insert`, a value in its partition is free").await;
    sessions.insert(&store.session(3, "a")).await.unwrap();
    store.record("`insert`, an expired entity has its value in the partition").await;
    passes.insert(&store.pass(2, "b")).await.unwrap();
    store.record("`insert`, a value in another partition is free").await;
    passes.insert(&store.pass(3, "a")).await.unwrap();
    store.record("`insert`, an expired entity has its value in another partition").await;
    store.lines
}

/// Returns the section of `docs/costs.md` about entities that expire.
pub(super) async fn section() -> String {
    let mut text = String::from(
        "\n## Entities that expire\n\n\
         Requests of a write to a partition that the process has written before. The client has read the store's time\n\
         within the last hour.\n\n\
         | write | before the answer | after the answer |\n|---|---|---|\n",
    );
    for (write, before, after) in measured().await {
        text.push_str(&format!("| {write} | {before} | {after} |\n"));
    }
    text
}

#[tokio::test]
async fn entities_that_expire_cost_as_many_requests_as_the_page_says() {
    let expected: [Line; 7] = [
        ("`insert`, the hour's marker is written", 1, 0),
        ("`insert`, the first of its partition and hour", 2, 0),
        ("`insert`, an expired entity has its key", 3, 0),
        ("`insert`, a value in its partition is free", 1, 0),
        ("`insert`, an expired entity has its value in the partition", 5, 0),
        ("`insert`, a value in another partition is free", 3, 2),
        ("`insert`, an expired entity has its value in another partition", 12, 2),
    ];
    assert_eq!(measured().await, expected);
}
