//! Models over several rows: wide entities, counting and deleting what a query finds; dated tables,
//! sweeps, blobs and logs.

use std::{ops::Range, sync::Arc, time::Duration};

use entable::{
    Filter,
    backend::{Backend, Durability, Embedded, EmbeddedOptions, ScanRequest},
    prelude::*,
};
use futures_util::future::try_join;
use tokio::runtime::Runtime;

use crate::{
    Size, blobs, dated,
    embedded::runtime,
    figure::{figure, in_pieces, in_turns, note, timed},
};

/// Entities that are deleted.
const DELETED: u32 = 100_000;
/// Entities of a partition.
const PARTITION: u32 = 10_000;
/// Wide entities that are read.
const YEARS: u32 = 2_000;
/// Wide entities that are read in a piece of a measurement.
const YEARS_OF_PIECE: u32 = 10;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "dept_{department:04}", row_key = "empid_{id:08}")]
struct Employee {
    department: u32,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
}

impl Employee {
    fn new(id: u32) -> Self {
        Self {
            department: id / PARTITION,
            id,
            first_name: format!("First{}", id % 977),
            last_name: format!("Last{}", id % 1009),
            age: i32::try_from(20 + id % 50).unwrap(),
            email: format!("person{id}@contoso.com"),
        }
    }
}

/// A count for each day of a year: two rows.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "years", row_key = "{employee:06}", wide)]
struct Year {
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 365],
}

/// The days of the first row of a year, as an entity of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "halves", row_key = "{employee:06}_first")]
struct FirstHalf {
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 183],
}

/// The days of the second row of a year, as an entity of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "halves", row_key = "{employee:06}_second")]
struct SecondHalf {
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 182],
}

/// Prints all figures.
pub(crate) fn run(size: Size) {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    // First: memory that the other models have freed would hide what streams take.
    blobs::run(&runtime);
    dated::run(&runtime);
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let store = EmbeddedOptions::new().durability(relaxed);
    let store = Arc::new(store.open(directory.path().join("staff.db")).unwrap());
    let client = Client::builder().backend(store.clone()).build().unwrap();
    wide(&runtime, &client);
    let staff: Table<Employee> = client.table();
    runtime.block_on(staff.create()).unwrap();
    let rows = if size >= Size::Large { 1_000_000 } else { 200_000 };
    runtime.block_on(async {
        let all = (0..rows).map(Employee::new);
        staff.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    });
    count(&runtime, &store, &staff, rows);
    delete_all(&runtime, &staff, rows);
}

/// Reads wide entities of 365 slots in two rows, beside point reads of two entities with as many
/// slots.
fn wide(runtime: &Runtime, client: &Client) {
    let years: Table<Year> = client.table();
    let first: Table<FirstHalf> = client.table();
    let second: Table<SecondHalf> = client.table();
    runtime.block_on(async {
        years.create().await.unwrap();
        let all = (0..YEARS).map(|employee| Year { employee, days: [7; 365] });
        years.bulk().insert_all(all).await.unwrap().into_result().unwrap();
        let all = (0..YEARS).map(|employee| FirstHalf { employee, days: [7; 183] });
        first.bulk().insert_all(all).await.unwrap().into_result().unwrap();
        let all = (0..YEARS).map(|employee| SecondHalf { employee, days: [7; 182] });
        second.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    });
    let read_years = async |employees: Range<u32>| {
        for employee in employees {
            let year = years.get(Year::primary().employee(employee)).await.unwrap().unwrap();
            assert_eq!(year.days[364], 7);
        }
    };
    let read_halves = async |employees: Range<u32>| {
        for employee in employees {
            let halves = try_join(
                first.get(FirstHalf::primary().employee(employee)),
                second.get(SecondHalf::primary().employee(employee)),
            );
            let (first, second) = halves.await.unwrap();
            assert_eq!((first.unwrap().days[182], second.unwrap().days[181]), (7, 7));
        }
    };
    let requests = || {
        let usage = client.usage();
        usage.reads + usage.scans
    };
    let before = requests();
    runtime.block_on(read_years(0..YEARS));
    let each = (requests() - before) as f64 / f64::from(YEARS);
    figure("models.wide read of 365 slots, requests", each, "<= 2");
    let piece = |at: usize| {
        let from = u32::try_from(at).unwrap() * YEARS_OF_PIECE;
        from..from + YEARS_OF_PIECE
    };
    let (joined, apart) = in_pieces(
        usize::try_from(YEARS / YEARS_OF_PIECE).unwrap(),
        |at| runtime.block_on(read_years(piece(at))),
        |at| runtime.block_on(read_halves(piece(at))),
    );
    let ratio = joined.as_secs_f64() / apart.as_secs_f64();
    figure("models.wide read of 365 slots, beside two point reads", ratio, "<= 1.2");
    note("models.wide read, microseconds", joined.as_micros() / u128::from(YEARS));
}

/// Counts all entities, beside a scan of all rows by the backend alone.
fn count(runtime: &Runtime, store: &Embedded, staff: &Table<Employee>, rows: u32) {
    let all = staff.query(Employee::scan());
    let (counted, scanned) = in_turns(
        || assert_eq!(runtime.block_on(all.count()).unwrap(), u64::from(rows)),
        || assert_eq!(runtime.block_on(scan(store)), rows as usize),
    );
    let rate = |time: Duration| f64::from(rows) / time.as_secs_f64();
    figure("models.count, rate beside the raw scan", rate(counted) / rate(scanned), ">= 0.8");
    note("models.counted rows/s", format!("{:.0}", rate(counted)));
}

async fn scan(store: &Embedded) -> usize {
    let (mut rows, mut from) = (0, None);
    loop {
        let filter = Filter::Constant(true);
        let scan = ScanRequest {
            table: "Staff",
            filter: &filter,
            select: None,
            top: None,
            from: from.as_ref(),
        };
        let page = store.scan(scan).await.unwrap();
        rows += page.rows.len();
        from = page.next;
        if from.is_none() {
            return rows;
        }
    }
}

/// Deletes entities by a query, beside the bulk insert of these.
fn delete_all(runtime: &Runtime, staff: &Table<Employee>, rows: u32) {
    // Partitions of their own.
    let ids = || (2 * rows..2 * rows + DELETED).map(Employee::new);
    let inserted = timed(|| {
        let report = runtime.block_on(staff.bulk().insert_all(ids())).unwrap();
        assert!(report.is_complete());
    });
    let departments = 2 * rows / PARTITION..(2 * rows + DELETED) / PARTITION;
    let deleted = timed(|| {
        for department in departments {
            let found = staff.query(Employee::primary().department(department));
            let report = runtime.block_on(async { found.delete_all().await }).unwrap();
            assert_eq!(report.done, u64::from(PARTITION));
        }
    });
    let ratio = inserted.as_secs_f64() / deleted.as_secs_f64();
    figure("models.delete_all, rate beside the bulk insert", ratio, ">= 0.5");
    let rate = f64::from(DELETED) / deleted.as_secs_f64();
    note("models.deleted rows/s", format!("{rate:.0}"));
}
