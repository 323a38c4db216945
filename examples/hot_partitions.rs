//! Spreads a log of events over partitions, and reads a time span from all of them.
//!
//! All rows with one PartitionKey are a partition, and one server of the service carries it: about 2,000
//! rows of 1 KiB a second. A PartitionKey that is the current hour sends every write there: a hot
//! partition. Here the key begins with what differs between the writers.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::collections::BTreeMap;

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

/// Returns how many rows each partition of a table has.
async fn partitions(client: &Client, table: &str) -> Result<BTreeMap<String, u32>, Error> {
    let rows = client
        .dynamic(table)
        .query(Filter::parse("EntityType ge 'A'")?)
        .allow_scan()
        .collect()
        .await?;
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.partition_key().to_owned()).or_default() += 1;
    }
    Ok(counts)
}

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

    for table in ["Hot", "ByEmployee", "Buckets"] {
        let counts = partitions(&client, table).await?;
        let (number, most) = (counts.len(), counts.values().max().copied().unwrap_or_default());
        println!("{table}: {EVENTS} events in {number} partitions, {most} in the fullest");
    }
    assert_eq!(partitions(&client, "Hot").await?.len(), 1);
    assert_eq!(partitions(&client, "ByEmployee").await?.len(), 20);
    let buckets = partitions(&client, "Buckets").await?;
    assert_eq!(buckets.len(), 8);
    assert!(buckets.values().all(|rows| *rows < EVENTS / 4), "the hash spreads");

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
