//! Measures what copies in other partitions cost: requests per write, the directory, and how fast a worker
//! does what is left.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Durability, EmbeddedOptions, Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    embedded::runtime,
    figure::{figure, note, rate, timed},
    memory::{peak_mebibytes, reset_peak},
};

/// Partitions whose directory cost is counted, and writes to each.
const PARTITIONS: usize = 400;
const WRITES: usize = 100;
/// Rows that a worker finds open, and over how many partitions.
const OPEN: usize = 10_000;
const OPEN_PARTITIONS: usize = 1_000;
/// Rows that a worker finds open in one partition.
const OPEN_IN_ONE: usize = 100_000;

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    age: i32,
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Accounts",
    partition_key = "{region}",
    row_key = "{id:06}",
    index(ByName, partition_key = "name_{name}", row_key = "account", unique)
)]
struct Account {
    region: String,
    id: u32,
    name: String,
}

fn employee(department: usize, id: usize) -> Employee {
    Employee {
        department: format!("d{department:04}"),
        id: id as u32,
        email: format!("e{department}.{id}@contoso.com"),
        age: 34,
    }
}

/// Prints all figures.
pub(crate) fn run() {
    let runtime = runtime();
    runtime.block_on(requests());
    runtime.block_on(directory());
    runtime.block_on(directory_of_bulk());
    drain();
    drain_of_one_partition();
}

async fn requests() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    staff.insert(&employee(0, 0)).await.unwrap().wait_for_copies().await.unwrap();
    recorder.clear();
    let mut stored = staff.insert(&employee(0, 1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    figure("outbox: requests of an insert with a copy elsewhere", recorder.count() as f64, "3");
    let first = recorder.take().remove(0);
    note("outbox: the request before its answer", first);
    stored.age = 35;
    let stored = staff.replace(&stored).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    let reads = recorder.requests().iter().filter(|request| request.is_read()).count();
    figure("outbox: reads of an update in place", reads as f64, "1");
    note("outbox: requests of an update in place", recorder.take().len());
    let accounts = client.table::<Account>();
    accounts.create().await.unwrap();
    let account = |id: u32| Account { region: "eu".into(), id, name: format!("n{id}") };
    accounts.insert(&account(0)).await.unwrap().wait_for_copies().await.unwrap();
    recorder.clear();
    accounts.insert(&account(1)).await.unwrap().wait_for_copies().await.unwrap();
    figure("outbox: requests of an insert with a unique value", recorder.count() as f64, "5");
}

/// Every request that is not a write's own: registrations, looks, closings.
async fn directory() {
    let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(recorder.clone()).clock(clock.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    client.create_table("EntableDirectory").await.unwrap();
    recorder.clear();
    for department in 0..PARTITIONS {
        for id in 0..WRITES {
            let stored = staff.insert(&employee(department, id)).await.unwrap();
            stored.wait_for_copies().await.unwrap();
        }
    }
    let writes = (PARTITIONS * WRITES) as f64;
    let writer = recorder.take().len() as f64 - 3.0 * writes;
    note("outbox: requests of the writer for the directory, per write", writer / writes);
    clock.advance(OutboxOptions::CLOSE_IDLE_AFTER + Duration::from_secs(60));
    client.worker().drain().await.unwrap();
    let closing = recorder.take();
    let markers = closing.iter().filter(|request| is_of_directory(request)).count();
    note("outbox: requests to the directory itself when all are closed", markers);
    let cost = (writer + closing.len() as f64) / writes;
    figure(
        "outbox: requests for the directory per 1000 writes, one at a time",
        cost * 1000.0,
        "<= 40",
    );
}

/// The same for a process that writes to all partitions at once: it registers for them together.
async fn directory_of_bulk() {
    let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(recorder.clone()).clock(clock.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    client.create_table("EntableDirectory").await.unwrap();
    recorder.clear();
    let all = (0..WRITES).flat_map(|id| (0..PARTITIONS).map(move |d| employee(d, id)));
    staff.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    client.wait_for_copies().await;
    let writer = recorder.take().iter().filter(|request| is_of_registration(request)).count();
    // Work that the writer left to workers is no cost of the directory.
    client.worker().drain().await.unwrap();
    recorder.clear();
    clock.advance(OutboxOptions::CLOSE_IDLE_AFTER + Duration::from_secs(60));
    client.worker().drain().await.unwrap();
    let closing = recorder.take().len();
    let writes = (PARTITIONS * WRITES) as f64;
    note("outbox: requests of a bulk write for the directory, per write", writer as f64 / writes);
    let cost = (writer + closing) as f64 / writes;
    figure("outbox: requests for the directory per 1000 writes, in bulk", cost * 1000.0, "<= 40");
}

/// Whether a request puts up a fence or writes the directory.
fn is_of_registration(request: &Request) -> bool {
    match request {
        Request::Apply { operations, .. } => {
            is_of_directory(request) || operations.iter().all(|(_, key)| key.starts_with("~e0_"))
        }
        _ => is_of_directory(request),
    }
}

fn is_of_directory(request: &Request) -> bool {
    match request {
        Request::Scan { table, .. } | Request::Apply { table, .. } => table == "EntableDirectory",
        _ => false,
    }
}

/// Returns a client of a new file in which these entities are written and their copies are not.
fn client_with_open_work(
    directory: &TempDir,
    runtime: &Runtime,
    entities: impl Iterator<Item = Employee> + Send + 'static,
) -> Client {
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let options = EmbeddedOptions::new().durability(relaxed);
    let store = options.open(directory.path().join("outbox.db")).unwrap();
    let outbox = OutboxOptions::default().background(0);
    let client = Client::builder().backend(store).outbox(outbox).build().unwrap();
    runtime.block_on(async {
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        staff.bulk().concurrency(32).insert_all(entities).await.unwrap().into_result().unwrap();
    });
    client
}

/// Returns how many of the `open` rows a worker does in a second.
fn drain_rate(client: &Client, runtime: &Runtime, open: usize) -> f64 {
    let worker = client.worker().concurrency(64);
    let time = timed(|| {
        let stats = runtime.block_on(worker.drain()).unwrap();
        assert_eq!((stats.applied, stats.open), (open as u64, 0));
    });
    open as f64 / time.as_secs_f64()
}

fn drain() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let each = OPEN / OPEN_PARTITIONS;
    let all = (0..OPEN_PARTITIONS).flat_map(move |d| (0..each).map(move |id| employee(d, id)));
    let client = client_with_open_work(&directory, &runtime, all);
    let done = drain_rate(&client, &runtime, OPEN);
    rate("outbox: open rows that a worker does per second", done, ">= 5000");
}

/// Measures how fast a worker does the work of one big partition, and the memory that it takes.
fn drain_of_one_partition() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let all = (0..OPEN_IN_ONE).map(|id| employee(0, id));
    let client = client_with_open_work(&directory, &runtime, all);
    let base = reset_peak();
    let done = drain_rate(&client, &runtime, OPEN_IN_ONE);
    let open = "100,000 open rows in one partition";
    rate(&format!("outbox: {open}, done by a worker per second"), done, ">= 20000");
    if let (Some(base), Some(peak)) = (base, peak_mebibytes()) {
        figure(&format!("outbox: {open}, MiB above the base"), peak - base, "<= 64");
        note("outbox: the base, MiB", format!("{base:.0}"));
    }
}
