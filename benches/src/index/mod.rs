//! Measures what copies in the partition cost: writing, reading through them, checking them.

mod fixture;

use std::{cell::Cell, path::Path, sync::Arc, time::Duration};

use entable::{
    Filter,
    backend::{Backend, Durability, Embedded, EmbeddedOptions, ScanRequest},
    prelude::*,
    table::Writable,
};
use fixture::{Indexed, Plain};
use tokio::runtime::Runtime;

use crate::{
    embedded::runtime,
    figure::{figure, in_turns, note},
};

/// Entities of the check.
const CHECKED: usize = 300_000;
/// Point reads of a turn.
const READS: usize = 20_000;

/// Prints all figures.
pub(crate) fn run() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    inserts(&runtime, directory.path(), "sync", Durability::Sync, 200, ">= 0.7");
    inserts(&runtime, directory.path(), "relaxed", relaxed, 10_000, ">= 0.4");
    let (store, flights) = open::<Indexed>(&runtime, &directory.path().join("check.db"), relaxed);
    runtime.block_on(async {
        let all = (0..CHECKED).map(Indexed::of);
        flights.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    });
    reads(&runtime, &flights);
    check(&runtime, &store, &flights);
}

fn open<E: TableEntity>(
    runtime: &Runtime,
    path: &Path,
    durability: Durability,
) -> (Arc<Embedded>, Table<E>) {
    let store = Arc::new(EmbeddedOptions::new().durability(durability).open(path).unwrap());
    let client = Client::builder().backend(store.clone()).build().unwrap();
    let table = client.table::<E>();
    runtime.block_on(table.create()).unwrap();
    (store, table)
}

/// One entity after the other, each waiting for its answer.
fn inserts(
    runtime: &Runtime,
    directory: &Path,
    name: &str,
    durability: Durability,
    count: usize,
    goal: &str,
) {
    let (_, plain) =
        open::<Plain>(runtime, &directory.join(format!("plain_{name}.db")), durability);
    let (_, indexed) =
        open::<Indexed>(runtime, &directory.join(format!("indexed_{name}.db")), durability);
    let (next, other) = (Cell::new(0), Cell::new(0));
    let take = |from: &Cell<usize>| from.replace(from.get() + count);
    let (alone, copied) = in_turns(
        || runtime.block_on(insert(&plain, take(&next)..next.get(), Plain::of)),
        || runtime.block_on(insert(&indexed, take(&other)..other.get(), Indexed::of)),
    );
    let ratio = alone.as_secs_f64() / copied.as_secs_f64();
    figure(&format!("index.insert_two_copies_{name}"), ratio, goal);
    let rate = |time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64());
    note(&format!("index.inserts/s {name}, plain"), rate(alone));
    note(&format!("index.inserts/s {name}, two copies"), rate(copied));
}

async fn insert<E: TableEntity + Writable>(
    table: &Table<E>,
    numbers: std::ops::Range<usize>,
    make: fn(usize) -> E,
) {
    for number in numbers {
        table.insert(&make(number)).await.unwrap();
    }
}

fn reads(runtime: &Runtime, flights: &Table<Indexed>) {
    let numbers = || (0..READS).map(|number| number * 7_919 % CHECKED);
    let primary = || async {
        for number in numbers() {
            let flight = Indexed::of(number);
            let point = Indexed::primary()
                .origin(flight.origin)
                .day(flight.day)
                .carrier(flight.carrier)
                .flight(flight.flight);
            assert!(flights.get(point).await.unwrap().is_some());
        }
    };
    let copy = || async {
        for number in numbers() {
            let flight = Indexed::of(number);
            let point =
                Indexed::by_booking().origin(flight.origin).day(flight.day).booking(flight.booking);
            assert!(flights.get(point).await.unwrap().is_some());
        }
    };
    let (primary, copy) = in_turns(|| runtime.block_on(primary()), || runtime.block_on(copy()));
    figure("index.read_through_copy", primary.as_secs_f64() / copy.as_secs_f64(), ">= 0.95");
    note("index.point reads/s", format!("{:.0}", READS as f64 / primary.as_secs_f64()));
}

fn check(runtime: &Runtime, store: &Arc<Embedded>, flights: &Table<Indexed>) {
    let rows = Cell::new(0);
    let everything = Filter::Constant(true);
    let scan = || async {
        let mut from = None;
        loop {
            let scan = ScanRequest {
                table: "Flights",
                filter: &everything,
                select: None,
                top: None,
                from: from.as_ref(),
            };
            let page = store.scan(scan).await.unwrap();
            match page.next {
                Some(next) => from = Some(next),
                None => return,
            }
        }
    };
    let checked = || async {
        let report = flights.check().await.unwrap();
        assert!(report.is_clean());
        rows.set(report.progress.rows);
    };
    let (scanned, checked) = in_turns(|| runtime.block_on(scan()), || runtime.block_on(checked()));
    figure("index.check_beside_scan", scanned.as_secs_f64() / checked.as_secs_f64(), ">= 0.5");
    let rate = |time: Duration| format!("{:.0}", rows.get() as f64 / time.as_secs_f64());
    note("index.rows/s scanned", rate(scanned));
    note("index.rows/s checked", rate(checked));
}
