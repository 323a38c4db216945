//! Spreads a log of events over partitions, and reads a time span from all of them.
//!
//! All rows with one PartitionKey are a partition, and one server of the service carries it: about 2,000
//! rows of 1 KiB a second. A PartitionKey that is the current hour sends every write there: a hot
//! partition. Here the key begins with what differs between the writers.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

/// Hot: every event of an hour is in one partition. The derive refuses it without `allow`.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Hot",
    partition_key = "{at:%Y%m%d%H}",
    row_key = "{at:%Y%m%d%H%M%S%f}_{number:06}",
    allow(hot_partition)
)]
struct HotEvent {
    at: OffsetDateTime,
    number: u32,
}

/// Spread by what the event is about: a partition for each employee.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "ByEmployee",
    partition_key = "{department}_{id:06}",
    row_key = "{at:%Y%m%d%H%M%S%f}_{number:06}"
)]
struct EmployeeEvent {
    department: String,
    id: u32,
    at: OffsetDateTime,
    number: u32,
}

/// Spread by a stable hash, where nothing else differs: eight buckets.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Buckets",
    partition_key = "{number:bucket(8)}",
    row_key = "{at:%Y%m%d%H%M%S%f}_{number:06}"
)]
struct BucketEvent {
    at: OffsetDateTime,
    number: u32,
}

const HOUR: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);
const EVENTS: u32 = 1_000;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    for table in ["Hot", "ByEmployee", "Buckets"] {
        client.create_table(table).await?;
    }
    let events = || (0..EVENTS).map(|number| (number, HOUR + Duration::seconds(i64::from(number))));
    let hot = events().map(|(number, at)| HotEvent { at, number });
    let by_employee = events().map(|(number, at)| EmployeeEvent {
        department: "Sales".into(),
        id: number % 20,
        at,
        number,
    });
    let buckets = events().map(|(number, at)| BucketEvent { at, number });
    client.bulk().insert_all(hot).await?.into_result()?;
    client.bulk().insert_all(by_employee).await?.into_result()?;
    client.bulk().insert_all(buckets).await?.into_result()?;

    // The report reads the whole table: run it now and then, to see whether a partition is hot.
    for (table, expected) in [("Hot", 1), ("ByEmployee", 20), ("Buckets", 8)] {
        let report = client.partition_report(table).await?;
        let fullest = report.top.first().map_or(0, |partition| partition.rows);
        let partitions = report.partitions;
        println!(
            "{table}: {} events in {partitions} partitions, {fullest} in the fullest",
            report.rows
        );
        assert_eq!((report.rows, partitions), (u64::from(EVENTS), expected));
        assert!(table == "Hot" || fullest < u64::from(EVENTS / 4), "the keys spread");
    }

    // The price: a time span is a range in each bucket. They are read side by side.
    recorder.clear();
    let span = HOUR + Duration::minutes(4)..HOUR + Duration::minutes(6);
    let paths = BucketEvent::primary()
        .number_buckets()
        .into_iter()
        .map(|bucket| bucket.at_range(span.clone()));
    let events: Table<BucketEvent> = client.table();
    let found = events.query_many(paths).concurrency(8).collect().await?;
    println!("two minutes: {} events, {} requests", found.len(), recorder.take().len());
    assert_eq!(found.len(), 120);

    // One employee's two minutes are one range.
    let events: Table<EmployeeEvent> = client.table();
    let path = EmployeeEvent::primary().department("Sales").id(7).at_range(span);
    let found = events.query(path).collect().await?;
    println!("of one employee: {} events, {} request", found.len(), recorder.take().len());
    assert_eq!(found.len(), 6);
    Ok(())
}
