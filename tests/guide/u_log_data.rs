//! U: log data in blobs, and the two designs of tables that the guide warns of.

use std::{ops::Range, sync::Arc};

use entable::{
    BlobLog, CostClass, Flush, LogRecord,
    backend::Memory,
    object_store::{Attribute, GetOptions, ObjectStore, memory::InMemory, path::Path},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

use crate::{
    flaky_blobs::Flaky,
    store::{TestResult, on_both},
};

const THREE: OffsetDateTime = datetime!(2014-07-31 15:00 UTC);

fn log_with(blobs: Arc<Flaky>) -> Result<BlobLog, Error> {
    Ok(Client::builder().backend(Memory::new()).blobs(blobs).build()?.blob_log("queue"))
}

fn new_log() -> Result<(Arc<Flaky>, BlobLog), Error> {
    let blobs = Flaky::over(Arc::new(InMemory::new()));
    Ok((blobs.clone(), log_with(blobs)?))
}

/// A busy hour: ten records a second, of which every 97th is an error and every 501st is critical.
fn busy_hour() -> impl Iterator<Item = LogRecord> {
    (0..36_000_i64).map(|number| {
        let level = match number {
            _ if number % 501 == 0 => "critical",
            _ if number % 97 == 0 => "error",
            _ => "info",
        };
        LogRecord::new(THREE + Duration::milliseconds(number * 100), [level, &number.to_string()])
    })
}

fn is_serious(record: &LogRecord) -> bool {
    matches!(record.field(0), Some("error" | "critical"))
}

fn two_minutes() -> Range<OffsetDateTime> {
    THREE + Duration::minutes(4)..THREE + Duration::minutes(6)
}

fn count(requests: &[String], kind: &str) -> usize {
    requests.iter().filter(|one| one.starts_with(kind)).count()
}

#[tokio::test]
async fn u01_u02_errors_of_two_minutes_are_read_from_few_blobs() -> TestResult {
    let (blobs, log) = new_log()?;
    let writer = log.writer(Flush::buffered().bytes(128 << 10));
    for record in busy_hour() {
        writer.append(record).await?;
    }
    writer.close().await?;
    blobs.take_requests();
    let found = log.read(two_minutes()).filter(is_serious).collect().await?;
    let expected: Vec<LogRecord> = busy_hour()
        .filter(|record| two_minutes().contains(&record.at()) && is_serious(record))
        .collect();
    assert!(expected.len() > 10 && found == expected, "{} of {}", found.len(), expected.len());
    let requests = blobs.take_requests();
    assert_eq!(count(&requests, "list"), 1, "one hour");
    assert!(count(&requests, "head") >= 9, "{requests:?}");
    assert!(count(&requests, "get") <= 3, "{requests:?}");
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logs", partition_key = "{source}", row_key = "{at:%Y%m%d%H%M%S%f}_{message:06}")]
struct BySource {
    source: String,
    at: OffsetDateTime,
    message: u32,
}

/// With a partition for each source, a span of time is a question to every source.
#[tokio::test]
async fn u04_a_partition_for_each_source_makes_a_time_span_a_question_to_all() -> TestResult {
    on_both(async |store| {
        let logs = store.table::<BySource>().await;
        let sources: Vec<String> = (0..5).map(|number| format!("server{number}")).collect();
        for (source, message) in sources.iter().flat_map(|source| [(source, 1), (source, 2)]) {
            let at = THREE + Duration::minutes(i64::from(message) * 5);
            logs.insert(&BySource { source: source.clone(), at, message }).await?;
        }
        store.recorder.clear();
        let span =
            |source: &String| BySource::primary().source(source.clone()).at_range(two_minutes());
        let found = logs.query_many(sources.iter().map(span)).collect().await?;
        assert_eq!(found.len(), 5);
        assert_eq!(store.recorder.count(), 5, "a request for each source");
        let all = logs.query(BySource::scan()).filter(BySource::AT.lt(THREE));
        assert_eq!(all.explain().class, CostClass::TableScan, "or the whole table");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn u05_delimited_lines_are_read_as_they_were_written() -> TestResult {
    let (blobs, log) = new_log()?;
    let fields = ["1.0", "", "GetMessage;PeekMessage", "said \"no\"", "two\r\nlines", "ä€"];
    let records = [
        LogRecord::new(THREE, fields),
        LogRecord::new(THREE, [""]),
        LogRecord::new(THREE, Vec::<String>::new()),
    ];
    let writer = log.writer(Flush::buffered());
    for record in &records {
        writer.append(record.clone()).await?;
    }
    writer.close().await?;
    let window = THREE..THREE + Duration::nanoseconds(100);
    assert_eq!(log.read(window).collect().await?, records);
    let blob = blobs.get_opts(&log.name(THREE, 1).into(), GetOptions::default()).await?;
    let text = String::from_utf8(blob.bytes().await?.to_vec())?;
    assert_eq!(
        text,
        "2014-07-31T15:00:00.0000000Z;1.0;;\"GetMessage;PeekMessage\";\"said \"\"no\"\"\";\"two\r\nlines\";ä€\n\
         2014-07-31T15:00:00.0000000Z;\n2014-07-31T15:00:00.0000000Z\n"
    );
    Ok(())
}

#[tokio::test]
async fn u06_u07_a_name_tells_log_hour_and_number_and_its_folder_lists_the_hour() -> TestResult {
    let (blobs, log) = new_log()?;
    let at = datetime!(2014-07-31 18:59:59.9999999 UTC);
    assert_eq!(log.name(at, 1), "queue/2014/07/31/1800/000001.log");
    let name = BlobLog::parse("queue/2014/07/31/1800/000001.log")?;
    let hour = datetime!(2014-07-31 18:00 UTC);
    assert_eq!((name.log(), name.hour(), name.number()), ("queue", hour, 1));
    let writer = log.writer(Flush::each());
    let tick = Duration::nanoseconds(100);
    // Of the hour before, of this one, of the next, and of the same hour on another day.
    for at in [hour - tick, hour, at, at + tick, hour + Duration::DAY] {
        writer.append(LogRecord::new(at, ["x"])).await?;
    }
    let folder = Path::from("queue/2014/07/31/1800");
    let mut found: Vec<String> =
        blobs.list(Some(&folder)).map_ok(|blob| blob.location.to_string()).try_collect().await?;
    found.sort_unstable();
    assert_eq!(found, [log.name(hour, 1), log.name(hour, 2)]);
    Ok(())
}

#[tokio::test]
async fn u08_metadata_has_the_first_and_the_last_time() -> TestResult {
    let (blobs, log) = new_log()?;
    let writer = log.writer(Flush::buffered());
    for minutes in [50, 10, 30] {
        writer.append(LogRecord::new(THREE + Duration::minutes(minutes), ["x"])).await?;
    }
    writer.flush().await?;
    let blob = blobs.get_opts(&log.name(THREE, 1).into(), GetOptions::default()).await?;
    let text = |key: &'static str| blob.attributes.get(&Attribute::Metadata(key.into()));
    assert_eq!(text("StartTime").ok_or("none")?.as_ref(), "2014-07-31T15:10:00Z");
    assert_eq!(text("EndTime").ok_or("none")?.as_ref(), "2014-07-31T15:50:00Z");
    blobs.take_requests();
    assert!(log.read(two_minutes()).collect().await?.is_empty());
    let requests = blobs.take_requests();
    assert_eq!((count(&requests, "head"), count(&requests, "get")), (1, 0), "not read");
    Ok(())
}

/// The guide's value 41: the name of the first file of the hour, the hour's folder, the blob's times.
#[tokio::test]
async fn u06_u08_value_41_the_first_file_of_an_hour_is_named_listed_and_dated() -> TestResult {
    let (blobs, log) = new_log()?;
    let writer = log.writer(Flush::buffered());
    let (from, to) = (datetime!(2014-07-31 18:04:05 UTC), datetime!(2014-07-31 18:59 UTC));
    // The hours before and after have files of their own.
    let others = [datetime!(2014-07-31 17:59:59 UTC), datetime!(2014-07-31 19:00 UTC)];
    for at in others.into_iter().chain([to, from]) {
        writer.append(LogRecord::new(at, ["info"])).await?;
    }
    writer.close().await?;
    let folder = Path::from("queue/2014/07/31/1800");
    let listed: Vec<String> =
        blobs.list(Some(&folder)).map_ok(|blob| blob.location.to_string()).try_collect().await?;
    assert_eq!(listed, ["queue/2014/07/31/1800/000001.log"]);
    let blob = blobs.get_opts(&listed[0].as_str().into(), GetOptions::default()).await?;
    let text = |key: &'static str| blob.attributes.get(&Attribute::Metadata(key.into()));
    assert_eq!(text("StartTime").ok_or("none")?.as_ref(), "2014-07-31T18:04:05Z");
    assert_eq!(text("EndTime").ok_or("none")?.as_ref(), "2014-07-31T18:59:00Z");
    Ok(())
}

#[tokio::test]
async fn u09_buffered_records_are_few_writes_and_each_is_as_many() -> TestResult {
    let records: Vec<LogRecord> = busy_hour().take(5_000).collect();
    let (blobs, log) = new_log()?;
    let writer = log.writer(Flush::buffered().bytes(64 << 10));
    for record in records.clone() {
        writer.append(record).await?;
    }
    assert!(log.read(THREE..two_minutes().end + Duration::HOUR).collect().await?.len() < 5_000);
    writer.flush().await?;
    let puts = count(&blobs.take_requests(), "put");
    // A line of time, level and number has at most 45 bytes.
    assert!((2..=1 + 5_000 * 45 / (64 << 10)).contains(&puts), "{puts} puts");
    assert_eq!(log.read(THREE..THREE + Duration::HOUR).collect().await?, records);

    let (blobs, log) = new_log()?;
    let writer = log.writer(Flush::each());
    for record in records.into_iter().take(100) {
        writer.append(record).await?;
    }
    assert_eq!(count(&blobs.take_requests(), "put"), 100, "nothing is left to lose");
    Ok(())
}
