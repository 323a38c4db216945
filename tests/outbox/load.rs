//! Tests workers on partitions with much open work, and on many partitions whose work is not due.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Batch, Clock, OutboxOptions, Row, Ticks, Verb, Worker, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest, layer::Recorder,
    },
    prelude::*,
};
use tokio::time::{Instant, sleep};

use crate::fixture::{Employee, employee};

/// A store that counts the dirty rows which it has returned and which are not deleted so far.
#[derive(Debug, Clone)]
struct Counting {
    inner: Arc<Memory>,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// The size of each dirty row that was returned.
    held: HashMap<String, usize>,
    bytes: usize,
    most_rows: usize,
    most_bytes: usize,
    /// Of each request for dirty rows or to delete some, in order, whether it is a deletion.
    order: Vec<bool>,
}

impl Counts {
    fn read(&mut self, rows: &[Result<Row, Error>]) {
        let rows = rows.iter().flatten().filter(|row| row.row_key().starts_with("~e2_"));
        let rows: Vec<_> =
            rows.map(|row| (row.row_key().to_owned(), row.as_bytes().len())).collect();
        if !rows.is_empty() {
            self.order.push(false);
        }
        self.bytes += rows.iter().map(|(_, size)| size).sum::<usize>();
        self.held.extend(rows);
        self.most_rows = self.most_rows.max(self.held.len());
        self.most_bytes = self.most_bytes.max(self.bytes);
    }

    fn delete(&mut self, batch: &Batch) {
        let operations = batch.operations().iter();
        for operation in operations.filter(|operation| operation.verb() == Verb::Delete) {
            if let Some(size) = self.held.remove(operation.row().row_key()) {
                self.bytes -= size;
                self.order.push(true);
            }
        }
    }
}

impl Backend for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            let page = self.inner.scan(request).await?;
            self.counts.lock().unwrap().read(&page.rows);
            Ok(page)
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            let written = self.inner.apply(batch).await?;
            self.counts.lock().unwrap().delete(batch);
            Ok(written)
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

/// Leaves work for that many entities in one partition, drains it, and returns the counts.
async fn drained(count: u32, id_digits: usize) -> Counts {
    let store = Counting { inner: Arc::new(Memory::new()), counts: Arc::default() };
    let options = OutboxOptions::default().background(0).copies_before_answer(false);
    let client = Client::builder().backend(store.clone()).outbox(options).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let all = (0..count).map(|id| Employee {
        last_name: format!("n{}", id % 50),
        email: format!("{id:0id_digits$}@contoso.com"),
        ..employee(id)
    });
    client.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    *store.counts.lock().unwrap() = Counts::default();
    let stats = client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.applied), (0, u64::from(count)));
    std::mem::take(&mut store.counts.lock().unwrap())
}

/// `ENTABLE_LONG=1` takes 100,000 rows.
#[tokio::test]
async fn a_big_partition_is_worked_on_in_chunks() {
    let count = if std::env::var_os("ENTABLE_LONG").is_some() { 100_000 } else { 4_000 };
    let counts = drained(count, 1).await;
    let first_removal = counts.order.iter().position(|is_deletion| *is_deletion).unwrap();
    let last_read = counts.order.iter().rposition(|is_deletion| !*is_deletion).unwrap();
    assert!(first_removal < last_read, "{first_removal} of {last_read}");
    assert!(
        counts.order[first_removal..last_read].iter().filter(|deletion| !**deletion).count() > 2
    );
    assert!(counts.most_rows <= 1_000, "{}", counts.most_rows);
    assert!(counts.held.is_empty());
}

/// Rows of 300 bytes come a thousand at a time, and long ones fewer.
#[tokio::test]
async fn a_chunk_is_bounded_by_bytes_too() {
    let long = drained(3_000, 200).await;
    let mean = long.most_bytes / long.most_rows;
    assert!(long.most_bytes <= 4 << 20, "{} bytes in {} rows", long.most_bytes, long.most_rows);
    println!("{} rows of {mean} bytes at a time", long.most_rows);
}

/// A clock that goes with the timers of a paused runtime.
#[derive(Debug)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Ticks {
        let gone = self.0.elapsed().as_nanos() / 100;
        Ticks::new(630_000_000_000_000_000 + i64::try_from(gone).unwrap()).unwrap()
    }
}

struct World {
    requests: Recorder,
    clock: Arc<PausedClock>,
    staff: Table<Employee>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(PausedClock(Instant::now()));
        let requests = Recorder::around(Memory::with_clock(clock.clone()));
        let options = OutboxOptions::default().background(0).copies_before_answer(false);
        let client = Client::builder().backend(requests.clone()).clock(clock.clone());
        let staff = client.outbox(options).build().unwrap().table::<Employee>();
        staff.create().await.unwrap();
        Self { requests, clock, staff }
    }

    fn client(&self) -> Client {
        let client = Client::builder().backend(self.requests.clone()).clock(self.clock.clone());
        client.build().unwrap()
    }

    async fn insert(&self, partition: u32) -> Stored<Employee> {
        let one = Employee { department: format!("d{partition:04}"), ..employee(partition) };
        self.staff.insert(&one).await.unwrap()
    }

    /// Lets a minute go by, and returns the number of its requests.
    async fn minute(&self) -> usize {
        self.requests.clear();
        sleep(Duration::from_secs(60)).await;
        self.requests.count()
    }
}

/// Runs a worker until the returned handle is dropped.
fn start(worker: Worker) -> tokio::sync::oneshot::Sender<()> {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    tokio::spawn(async move { worker.run(async { drop(stopped.await) }).await });
    stop
}

#[tokio::test(start_paused = true)]
async fn closed_partitions_cost_nothing() {
    for partitions in [0, 300] {
        let world = World::new().await;
        for partition in 0..partitions {
            world.insert(partition).await;
        }
        let worker = world.client().worker().with::<Employee>();
        let _stop = start(worker.clone());
        sleep(Duration::from_secs(240)).await;
        assert_eq!(worker.stats().closed, u64::from(partitions));
        for _ in 0..3 {
            let requests = world.minute().await;
            assert!(requests <= 20, "{requests} with {partitions} partitions");
        }
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
struct Welcome {
    id: u32,
}

/// Messages that wait after a failure, and rows of types that the worker does not know.
#[tokio::test(start_paused = true)]
async fn work_that_is_not_due_costs_little() {
    let world = World::new().await;
    // A worker that does not know the type of the entities, and that waits with the messages.
    for partition in 0..300 {
        world.insert(partition).await;
    }
    let waits = Ticks::new(world.clock.now().get() + 36_000_000_000).unwrap();
    for partition in 300..600 {
        world.insert(partition).await;
        let message = DynamicEntity::new(format!("d{partition:04}"), "~e3_m1")
            .with_framework_names()
            .with("EntityType", "entable.message")
            .with("Format", 1)
            .with("Type", "Welcome")
            .with("Version", 1)
            .with("Body", "{\"id\":1}")
            .with("Delayed", waits);
        world.staff.client().dynamic("Staff").insert(&message).await.unwrap();
    }
    let unknowing = world.client().worker().on(|_, _: Welcome| async { Ok(()) });
    let _stop = start(unknowing.clone());
    sleep(Duration::from_secs(20)).await;
    assert_eq!((unknowing.stats().unknown, unknowing.stats().open), (600, 300));
    for partition in 600..1_000 {
        world.insert(partition).await;
    }
    sleep(Duration::from_secs(20)).await;
    assert_eq!(unknowing.stats().unknown, 1_000);
    let mut looked_at = Vec::new();
    for minute in 0..6 {
        let requests = world.minute().await;
        assert!(requests <= 100, "{requests} in minute {minute}");
        let scans = world.requests.take().into_iter().map(|request| request.to_string());
        looked_at.extend(scans.filter(|request| request.starts_with("scan Staff")));
    }
    // Those that wait the longest come first, so that nobody is forgotten.
    let looks = looked_at.len();
    assert!((200..=380).contains(&looks), "{looks}");
    looked_at.sort();
    looked_at.dedup();
    assert_eq!(looked_at.len(), looks);
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_cost_little_until_they_are_due() {
    let world = World::new().await;
    for partition in 0..1_000 {
        let stored = world.insert(partition).await;
        world.staff.delete(&stored).await.unwrap();
    }
    let worker = world.client().worker().with::<Employee>();
    let _stop = start(worker.clone());
    sleep(Duration::from_secs(20)).await;
    assert_eq!(worker.stats().waiting, 1_000);
    for minute in 0..4 {
        let requests = world.minute().await;
        assert!(requests <= 100, "{requests} in minute {minute}");
    }
    // The second look, a flight after the deletion, and then the end of the registration.
    sleep(Duration::from_secs(120)).await;
    assert_eq!((worker.stats().waiting, worker.stats().applied), (0, 1_000));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(worker.stats().closed, 1_000);
}

/// The fence tells that somebody left work beside a row that is unknown, and a look finds it.
#[tokio::test(start_paused = true)]
async fn a_look_finds_work_that_was_left_meanwhile() {
    let world = World::new().await;
    world.insert(1).await;
    let unknowing = world.client().worker();
    let _stop = start(unknowing.clone());
    sleep(Duration::from_secs(3_600)).await;
    let other = Employee { department: "d0001".into(), ..employee(7) };
    world.staff.insert(&other).await.unwrap();
    sleep(16 * OutboxOptions::CLOSE_IDLE_AFTER + Duration::from_secs(10)).await;
    assert_eq!(unknowing.stats().unknown, 2);
    // From now on the partition is looked at each minute, and then more rarely again.
    let looks = |requests: &[String]| {
        requests.iter().filter(|request| request.contains("scan Staff")).count()
    };
    let mut found = Vec::new();
    for _ in 0..30 {
        world.requests.clear();
        sleep(Duration::from_secs(60)).await;
        let requests: Vec<_> = world.requests.take().iter().map(ToString::to_string).collect();
        found.push(looks(&requests));
    }
    assert!(found.iter().sum::<usize>() <= 12, "{found:?}");
}

/// A type that becomes known makes the worker go to the rows that were unknown.
#[tokio::test(start_paused = true)]
async fn rows_are_worked_on_once_their_type_is_known() {
    let world = World::new().await;
    world.insert(1).await;
    let client = world.client();
    let worker = client.worker();
    let _stop = start(worker.clone());
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(worker.stats().unknown, 1);
    let _staff = client.table::<Employee>();
    sleep(Duration::from_secs(10)).await;
    assert_eq!((worker.stats().unknown, worker.stats().applied), (0, 1));
}
