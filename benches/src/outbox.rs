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

use crate::{
    embedded::runtime,
    figure::{figure, note, rate, timed},
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
    clock.advance(OutboxOptions::LEASE + Duration::from_secs(60));
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
    clock.advance(OutboxOptions::LEASE + Duration::from_secs(60));
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

fn drain() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let options = EmbeddedOptions::new().durability(relaxed);
    let store = options.open(directory.path().join("outbox.db")).unwrap();
    let outbox = OutboxOptions::default().background(0);
    let client = Client::builder().backend(store).outbox(outbox).build().unwrap();
    runtime.block_on(async {
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        let each = OPEN / OPEN_PARTITIONS;
        let all = (0..OPEN_PARTITIONS).flat_map(|d| (0..each).map(move |id| employee(d, id)));
        staff.bulk().concurrency(32).insert_all(all).await.unwrap().into_result().unwrap();
    });
    let worker = client.worker().concurrency(64);
    let time = timed(|| {
        let stats = runtime.block_on(worker.drain()).unwrap();
        assert_eq!((stats.applied, stats.open), (OPEN as u64, 0));
    });
    rate(
        "outbox: open rows that a worker does per second",
        OPEN as f64 / time.as_secs_f64(),
        ">= 5000",
    );
}

/// Measures how fast a worker does the work of one big partition, and the memory that it takes.
fn drain_of_one_partition() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let options = EmbeddedOptions::new().durability(relaxed);
    let store = options.open(directory.path().join("outbox.db")).unwrap();
    let outbox = OutboxOptions::default().background(0);
    let client = Client::builder().backend(store).outbox(outbox).build().unwrap();
    runtime.block_on(async {
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        let all = (0..OPEN_IN_ONE).map(|id| employee(0, id));
        staff.bulk().concurrency(32).insert_all(all).await.unwrap().into_result().unwrap();
    });
    let base = memory_mebibytes("VmRSS:");
    // The peak begins anew.
    drop(std::fs::write("/proc/self/clear_refs", "5"));
    let worker = client.worker().concurrency(64);
    let time = timed(|| {
        let stats = runtime.block_on(worker.drain()).unwrap();
        assert_eq!((stats.applied, stats.open), (OPEN_IN_ONE as u64, 0));
    });
    let open = "100,000 open rows in one partition";
    rate(
        &format!("outbox: {open}, done by a worker per second"),
        OPEN_IN_ONE as f64 / time.as_secs_f64(),
        ">= 20000",
    );
    if let (Some(base), Some(peak)) = (base, memory_mebibytes("VmHWM:")) {
        figure(&format!("outbox: {open}, MiB above the base"), peak - base, "<= 64");
        note("outbox: the base, MiB", format!("{base:.0}"));
    }
}

/// Returns a figure of this process's memory; `None` where the system does not tell.
fn memory_mebibytes(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}
