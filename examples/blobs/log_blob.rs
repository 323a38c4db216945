//! Reads all errors and criticals between 15:04 and 15:06 of a busy hour: from a log in blobs, and from
//! the two tables that such a log is often put into.
//!
//! A partition for each hour takes every write of the hour. A partition for each source makes a time span
//! a question to every source. Blobs take the log in large pieces, and tell their first and last times.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::sync::Arc;

use entable::{
    Flush, LogRecord,
    backend::{Memory, layer::Recorder},
    object_store::{ObjectStore, memory::InMemory},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

const THREE: OffsetDateTime = datetime!(2014-07-31 15:00 UTC);
const RECORDS: u32 = 3_600;
const SOURCES: u32 = 12;

/// The first bad design: one partition for each hour. The derive refuses it without `allow`.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "ByHour",
    partition_key = "{at:%Y%m%d%H}",
    row_key = "{at:%Y%m%d%H%M%S%f}_{message:06}",
    allow(hot_partition)
)]
struct ByHour {
    at: OffsetDateTime,
    message: u32,
    level: String,
}

/// The second bad design: one partition for each source.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "BySource",
    partition_key = "{source:02}",
    row_key = "{at:%Y%m%d%H%M%S%f}_{message:06}"
)]
struct BySource {
    source: u32,
    at: OffsetDateTime,
    message: u32,
    level: String,
}

/// Returns the time and the level of a message.
fn message(number: u32) -> (OffsetDateTime, &'static str) {
    let level = match number {
        _ if number.is_multiple_of(53) => "critical",
        _ if number.is_multiple_of(11) => "error",
        _ => "info",
    };
    (THREE + Duration::seconds(number.into()), level)
}

fn is_serious(level: &str) -> bool {
    level == "error" || level == "critical"
}

/// Writes the log into both tables; returns the serious messages of the window from each, with the
/// requests that they took.
async fn ask_tables(
    from: OffsetDateTime,
    to: OffsetDateTime,
) -> Result<[(usize, usize); 2], BoxError> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let (by_hour, by_source) = (client.table::<ByHour>(), client.table::<BySource>());
    by_hour.create().await?;
    by_source.create().await?;
    let hours = (0..RECORDS).map(|number| {
        let (at, level) = message(number);
        ByHour { at, message: number, level: level.into() }
    });
    by_hour.bulk().insert_all(hours).await?.into_result()?;
    let sources = (0..RECORDS).map(|number| {
        let (at, level) = message(number);
        BySource { source: number % SOURCES, at, message: number, level: level.into() }
    });
    by_source.bulk().insert_all(sources).await?.into_result()?;

    recorder.clear();
    let hour = by_hour
        .query(ByHour::scan())
        .filter(ByHour::PARTITION_KEY.eq("2014073115"))
        .filter(ByHour::ROW_KEY.ge("201407311504"))
        .filter(ByHour::ROW_KEY.lt("201407311506"))
        .collect()
        .await?;
    let of_hour = hour.iter().filter(|found| is_serious(&found.level)).count();
    let hour_requests = recorder.count();

    recorder.clear();
    let spans = (0..SOURCES).map(|source| BySource::primary().source(source).at_range(from..to));
    let found = by_source.query_many(spans).collect().await?;
    let of_sources = found.iter().filter(|found| is_serious(&found.level)).count();
    Ok([(of_hour, hour_requests), (of_sources, recorder.count())])
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (from, to) = (THREE + Duration::minutes(4), THREE + Duration::minutes(6));
    let blobs = Arc::new(InMemory::new());
    let client = Client::builder().backend(Memory::new()).blobs(blobs.clone()).build()?;
    let log = client.blob_log("queue");

    // 16 KiB in a blob, since this hour is small; 4 MiB is usual.
    let writer = log.writer(Flush::buffered().bytes(16 << 10));
    for number in 0..RECORDS {
        let (at, level) = message(number);
        writer.append(LogRecord::new(at, [level.to_owned(), format!("message {number}")])).await?;
    }
    // Records after the last flush are lost with the process: so the writer is closed.
    writer.close().await?;
    let written = blobs.list(None).count().await;
    println!("{RECORDS} records are {written} blobs, the first is {}", log.name(THREE, 1));

    let serious = log.read(from..to).filter(|record| record.field(0).is_some_and(is_serious));
    let mut found = serious.stream();
    let mut count = 0;
    while let Some(record) = found.try_next().await? {
        assert!(record.at() >= from && record.at() < to);
        count += 1;
        let (hour, minute, second) = record.at().to_hms();
        println!("  {hour:02}:{minute:02}:{second:02} {}", record.fields().join(" "));
    }
    assert_eq!(count, (240..360).filter(|number| is_serious(message(*number).1)).count());

    // One list, one request for the metadata of each blob, and the blobs that overlap the window.
    let [by_hour, by_source] = ask_tables(from, to).await?;
    assert_eq!((by_hour.0, by_source.0), (count, count));
    assert_eq!(by_source.1, SOURCES as usize, "a request for each source");
    println!("written as      requests to write        to read two minutes");
    println!("blobs           {written:>8}                 1 list, {written} heads, 1 or 2 reads");
    println!("row per hour    {:>8}, one partition  {}", RECORDS / 100, by_hour.1);
    println!("row per source  {:>8}                 {}", RECORDS / 100, by_source.1);
    assert_eq!(by_hour.1, 1, "cheap to read: all of the hour's writes have met in one partition");
    assert!(written < 20);
    Ok(())
}
