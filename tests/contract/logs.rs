//! Logs in blobs: what is written where, what a reader asks for, what a fault leaves.

use std::{
    collections::BTreeSet,
    error::Error as _,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use entable::{
    BlobLog, DamagedLine, Flush, LogRecord, LogWriter,
    backend::Memory,
    object_store::{
        Attribute, GetOptions, ObjectStore, PutMode, PutOptions, local::LocalFileSystem,
        memory::InMemory,
    },
    prelude::*,
};
use time::{OffsetDateTime, macros::datetime};

use crate::flaky_blobs::{Fate, Flaky};

const SIX: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);

fn hour() -> std::ops::Range<OffsetDateTime> {
    SIX..SIX + time::Duration::HOUR
}

fn log_in(blobs: Arc<dyn ObjectStore>) -> BlobLog {
    let client = Client::builder().backend(Memory::new()).blobs(blobs).build().unwrap();
    client.blob_log("queue")
}

fn in_memory() -> (Arc<Flaky>, BlobLog) {
    let blobs = Flaky::over(Arc::new(InMemory::new()));
    (blobs.clone(), log_in(blobs))
}

fn record(second: i64, text: &str) -> LogRecord {
    LogRecord::new(SIX + time::Duration::seconds(second), ["info", text])
}

async fn texts(log: &BlobLog) -> Vec<String> {
    let day = SIX - time::Duration::DAY..SIX + time::Duration::DAY;
    let found = log.read(day).collect().await.unwrap();
    found.iter().map(|record| record.field(1).unwrap().to_owned()).collect()
}

async fn put(blobs: &dyn ObjectStore, name: &str, text: &str) {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    blobs.put_opts(&name.into(), text.to_owned().into(), options).await.unwrap();
}

async fn text(blobs: &dyn ObjectStore, name: &str) -> String {
    let blob = blobs.get_opts(&name.into(), GetOptions::default()).await.unwrap();
    String::from_utf8(blob.bytes().await.unwrap().to_vec()).unwrap()
}

async fn metadata(blobs: &dyn ObjectStore, name: &str, key: &'static str) -> Option<String> {
    let blob = blobs.get_opts(&name.into(), GetOptions::default()).await.unwrap();
    blob.attributes.get(&Attribute::Metadata(key.into())).map(|value| value.to_string())
}

#[tokio::test]
async fn a_flush_writes_one_blob_for_each_hour_sorted_by_time() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered());
    let midnight = datetime!(2014-08-01 0:00 UTC);
    let tick = time::Duration::nanoseconds(100);
    // The clock of the program goes backwards, and one record comes from another zone.
    writer.append(LogRecord::new(midnight, ["info", "new day"])).await.unwrap();
    writer.append(LogRecord::new(midnight - tick, ["info", "last; \"of\" all"])).await.unwrap();
    let zoned = datetime!(2014-08-01 1:30 +2);
    writer.append(LogRecord::new(zoned, ["error", ""])).await.unwrap();
    writer.append(LogRecord::new(zoned, ["error", "two\nlines"])).await.unwrap();
    assert_eq!(blobs.count(), 0, "nothing is sent before the flush");
    writer.flush().await.unwrap();
    let first = "queue/2014/07/31/2300/000001.log";
    let puts = blobs.take_requests();
    assert_eq!(puts, [format!("put {first}"), "put queue/2014/08/01/0000/000001.log".into()]);
    assert_eq!(
        text(&*blobs, first).await,
        "2014-07-31T23:30:00.0000000Z;error;\n2014-07-31T23:30:00.0000000Z;error;\"two\nlines\"\n\
         2014-07-31T23:59:59.9999999Z;info;\"last; \"\"of\"\" all\"\n"
    );
    assert_eq!(metadata(&*blobs, first, "StartTime").await.unwrap(), "2014-07-31T23:30:00Z");
    assert_eq!(metadata(&*blobs, first, "EndTime").await.unwrap(), "2014-07-31T23:59:59.9999999Z");
    assert!(metadata(&*blobs, first, "Batch").await.is_some_and(|batch| batch.len() == 24));
    // The window has its beginning, not its end.
    let found = log.read(midnight - tick..midnight).collect().await.unwrap();
    assert_eq!(found, [LogRecord::new(midnight - tick, ["info", "last; \"of\" all"])]);
    let found = log.read(zoned..midnight + tick).collect().await.unwrap();
    assert_eq!(found.len(), 4);
    assert_eq!((found[0].fields(), found[0].at()), (&["error", ""].map(String::from)[..], zoned));
    assert!(log.read(midnight + tick..midnight + tick * 2).collect().await.unwrap().is_empty());
    writer.flush().await.unwrap();
    assert!(!blobs.take_requests().iter().any(|one| one.starts_with("put")), "nothing is left");
}

#[tokio::test]
async fn records_of_one_time_stay_in_the_order_in_which_they_came() {
    let (_, log) = in_memory();
    let writer = log.writer(Flush::buffered());
    for number in 0..200 {
        writer.append(record(number % 2, &format!("{number:03}"))).await.unwrap();
    }
    writer.close().await.unwrap();
    let found = texts(&log).await;
    let expected = (0..200).step_by(2).chain((1..200).step_by(2));
    assert_eq!(found, expected.map(|number| format!("{number:03}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_window_of_centuries_lists_the_months_of_years_with_blobs() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered());
    let (late, early) = (datetime!(2016-02-29 23:30 UTC), datetime!(1999-12-31 4:00 UTC));
    for at in [SIX + time::Duration::HOUR * 30, SIX, late, early] {
        writer.append(LogRecord::new(at, ["info", "x"])).await.unwrap();
    }
    writer.close().await.unwrap();
    // Blobs of other programs beside the years and in them.
    for other in ["queue/notes", "queue/now/x.log", "queue/2014/07/notes"] {
        put(&*blobs, other, "").await;
    }
    let all = datetime!(1700-01-01 0:00 UTC)..datetime!(2300-01-01 0:00 UTC);
    blobs.take_requests();
    let found = log.read(all).collect().await.unwrap();
    let times: Vec<_> = found.iter().map(LogRecord::at).collect();
    assert_eq!(times, [early, SIX, SIX + time::Duration::HOUR * 30, late]);
    let lists = blobs.take_requests().into_iter().filter(|one| one.starts_with("list"));
    assert_eq!(lists.count(), 1 + 3 * 12, "the years, and the months of three");
    // A day of hours is one folder.
    let day = datetime!(2014-07-31 0:00 UTC)..datetime!(2014-08-01 0:00 UTC);
    assert_eq!(log.read(day).collect().await.unwrap().len(), 1);
    let lists = blobs.take_requests().into_iter().filter(|one| one.starts_with("list"));
    assert_eq!(lists.collect::<Vec<_>>(), ["list queue/2014/07/31"]);
}

#[tokio::test]
async fn each_record_is_stored_before_append_returns() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::each());
    for second in 0..3 {
        writer.append(record(second, "x")).await.unwrap();
        let puts = blobs.take_requests();
        assert_eq!(puts, [format!("put queue/2014/07/31/1800/{:06}.log", second + 1)]);
    }
    let reader = log.read(hour()).filter(|r| r.field(1) == Some("x"));
    let reader = reader.filter(|r| r.at() >= SIX + time::Duration::seconds(1));
    assert_eq!(reader.collect().await.unwrap().len(), 2, "both conditions hold");
}

#[tokio::test]
async fn appended_records_wait_only_while_two_buffers_are_full() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered().records(2));
    blobs.hold_puts();
    for second in 0..4 {
        let append = writer.append(record(second, "x"));
        tokio::time::timeout(Duration::from_secs(5), append).await.unwrap().unwrap();
    }
    let fifth = writer.append(record(4, "given up"));
    assert!(tokio::time::timeout(Duration::from_millis(100), fifth).await.is_err());
    assert_eq!(blobs.take_requests().len(), 1, "one buffer is being stored");
    blobs.release_puts();
    writer.append(record(5, "last")).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(blobs.take_requests().len(), 2, "the second buffer, and the rest");
    assert_eq!(texts(&log).await, ["x", "x", "x", "x", "last"], "what was given up is not there");
    let error = writer.clone().append(record(6, "late")).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("closed"), "{error}");
}

#[tokio::test]
async fn a_full_buffer_is_stored_by_bytes_too() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered().bytes(1000));
    let line = "x".repeat(199 - "2014-07-31T18:00:00.0000000Z;info;".len());
    for second in 0..50 {
        writer.append(record(second, &line)).await.unwrap();
    }
    writer.close().await.unwrap();
    assert_eq!(blobs.count(), 10, "a put for five lines of 200 bytes");
}

#[tokio::test(start_paused = true)]
async fn an_old_record_is_stored_without_another_one() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered().after(Duration::from_secs(30)));
    writer.append(record(0, "first")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    writer.append(record(1, "second")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(blobs.count(), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(texts(&log).await, ["first", "second"]);
    blobs.take_requests();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(blobs.take_requests().is_empty(), "nothing to store");
    // Whoever drops the writer loses nothing while the program runs, and a store that is down for a
    // while is asked again.
    writer.append(record(2, "third")).await.unwrap();
    drop(writer);
    blobs.is_down.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(100)).await;
    blobs.is_down.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(texts(&log).await, ["first", "second", "third"]);
}

#[test]
fn a_writer_that_outlives_its_runtime_stores_old_records_in_the_next_one() {
    let (_, log) = in_memory();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let writer = log.writer(Flush::buffered().after(Duration::from_millis(20)));
    runtime().block_on(writer.append(record(1, "a"))).unwrap();
    runtime().block_on(async {
        writer.append(record(2, "b")).await.unwrap();
        for _ in 0..1_000 {
            if !texts(&log).await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(texts(&log).await, ["a", "b"]);
    });
}

#[test]
fn the_end_of_the_process_loses_what_came_after_the_last_flush_and_only_that() {
    let (blobs, log) = in_memory();
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let writer = log.writer(Flush::buffered());
        writer.append(record(0, "kept")).await.unwrap();
        writer.flush().await.unwrap();
        writer.append(record(1, "lost")).await.unwrap();
    });
    process.shutdown_background();
    let next = tokio::runtime::Runtime::new().unwrap();
    next.block_on(async {
        let log = log_in(blobs);
        assert_eq!(texts(&log).await, ["kept"]);
        let writer = log.writer(Flush::each());
        writer.append(record(2, "after")).await.unwrap();
        assert_eq!(texts(&log).await, ["kept", "after"], "the next process takes the next number");
    });
}

#[tokio::test]
async fn a_store_that_is_down_loses_no_record_that_was_appended() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered().records(2));
    blobs.is_down.store(true, Ordering::SeqCst);
    let mut appended = Vec::new();
    for second in 0..8 {
        match writer.append(record(second, &second.to_string())).await {
            Ok(()) => appended.push(second.to_string()),
            Err(error) => assert!(error.is_backend(), "{error}"),
        }
    }
    assert_eq!(appended, ["0", "1", "2", "3"], "two buffers of two, then errors");
    let error = writer.close().await.unwrap_err();
    assert!(error.is_backend() && error.to_string().contains("000001.log"), "{error}");
    blobs.is_down.store(false, Ordering::SeqCst);
    writer.close().await.unwrap();
    assert_eq!(texts(&log).await, appended);
    assert!(log.writer(Flush::each()).append(record(9, "x")).await.is_ok());
}

/// Appends and flushes records of three hours, and repeats what fails. Returns what was appended.
async fn persistent_writer(writer: &LogWriter, prefix: &str) -> Vec<String> {
    let mut appended = Vec::new();
    for round in 0..3 {
        for second in [0, 3_600, 7_200] {
            let text = format!("{prefix}{round}_{second}");
            // An error means that the record is not in the writer.
            while writer.append(record(second + round, &text)).await.is_err() {}
            appended.push(text);
        }
        while writer.flush().await.is_err() {}
    }
    while writer.close().await.is_err() {}
    appended
}

async fn assert_each_once(blobs: Arc<dyn ObjectStore>, mut appended: Vec<String>, context: &str) {
    let mut found = texts(&log_in(blobs)).await;
    found.sort_unstable();
    appended.sort_unstable();
    assert_eq!(found, appended, "{context}");
}

/// Runs a writer with that fate at every request in turn, and at several in a row.
async fn is_exact_under(fate: Fate, keep: impl Fn() -> Arc<dyn ObjectStore>) {
    for in_a_row in [1, 2, 5] {
        for first in 0.. {
            let kept = keep();
            let blobs = Flaky::over(kept.clone());
            blobs.set_fates((first..first + in_a_row).map(|number| (number, fate)));
            let appended =
                persistent_writer(&log_in(blobs.clone()).writer(Flush::buffered()), "a").await;
            // Puts that are late have arrived by then.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let context =
                format!("{fate:?} at {first}, {in_a_row} in a row: {:#?}", blobs.take_requests());
            assert_each_once(kept, appended, &context).await;
            if blobs.count() <= first {
                assert!(first > 8, "nine blobs are nine requests at least");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_at_any_request_neither_loses_nor_doubles_a_record() {
    for fate in [Fate::Refused, Fate::Unanswered, Fate::Late] {
        is_exact_under(fate, || Arc::new(InMemory::new())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_at_any_request_to_a_directory_neither_loses_nor_doubles_a_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut number = 0;
    for fate in [Fate::Refused, Fate::Unanswered, Fate::Late] {
        let number = std::cell::Cell::new({
            number += 1000;
            number
        });
        is_exact_under(fate, || {
            number.set(number.get() + 1);
            let path = directory.path().join(number.get().to_string());
            std::fs::create_dir(&path).unwrap();
            Arc::new(LocalFileSystem::new_with_prefix(path).unwrap())
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_with_each_record_is_told_from_success() {
    for fate in [Fate::Refused, Fate::Unanswered, Fate::Late] {
        for (first, in_a_row) in (0..12).flat_map(|first| [(first, 1), (first, 2), (first, 9)]) {
            let kept = Arc::new(InMemory::new());
            let blobs = Flaky::over(kept.clone());
            blobs.set_fates((first..first + in_a_row).map(|number| (number, fate)));
            let writer = log_in(blobs).writer(Flush::each());
            let (mut stored, mut unclear) = (BTreeSet::new(), BTreeSet::new());
            for second in 0..4 {
                let text = second.to_string();
                match writer.append(record(second, &text)).await {
                    Ok(()) => stored.insert(text),
                    Err(error) => {
                        assert!(error.is_ambiguous(), "{error}");
                        unclear.insert(text)
                    }
                };
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            let found = texts(&log_in(kept)).await;
            let once: BTreeSet<String> = found.iter().cloned().collect();
            assert_eq!(once.len(), found.len(), "twice: {fate:?} at {first}, {in_a_row}");
            assert!(stored.is_subset(&once), "lost: {fate:?} at {first}, {in_a_row}");
            assert!(once.is_subset(&stored.union(&unclear).cloned().collect()));
            assert!(
                in_a_row == 9 || unclear.is_empty(),
                "{fate:?} at {first}: one answer is no loss"
            );
        }
    }
}

/// A refusal after a lost answer says nothing about the put before it, which may still arrive: the records keep
/// their number.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_a_lost_answer_does_not_double_a_record() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::buffered());
    writer.append(record(0, "once")).await.unwrap();
    // A put that arrives later, the look for it, and the second put.
    blobs.set_fates([(0, Fate::Late), (2, Fate::Denied)]);
    let error = writer.flush().await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    writer.close().await.unwrap();
    assert_eq!(texts(&log).await, ["once"]);
}

/// A directory keeps no metadata that tells whose a blob is.
#[tokio::test]
async fn equal_records_of_two_writers_are_both_kept_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let log = || log_in(Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap()));
    for writer in [log().writer(Flush::each()), log().writer(Flush::each())] {
        writer.append(record(0, "equal")).await.unwrap();
    }
    assert_eq!(texts(&log()).await, ["equal", "equal"]);
}

/// A simple generator, so that a failing history can be repeated.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

#[tokio::test(start_paused = true)]
async fn several_writers_with_random_faults_neither_lose_nor_double_a_record() {
    for seed in 1..=60_u64 {
        let kept: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut writing = Vec::new();
        for writer in 0..3 {
            let mut state = seed * 31 + writer;
            let blobs = Flaky::over(kept.clone());
            let fates = (0..200).filter_map(|number| {
                let fates = [Fate::Refused, Fate::Unanswered, Fate::Late];
                let fate = fates.get(draw(&mut state, 10) as usize).copied();
                fate.map(|fate| (number, fate))
            });
            blobs.set_fates(fates.collect::<Vec<_>>());
            let flush = Flush::buffered().records(1 + draw(&mut state, 4) as usize);
            let log = log_in(blobs);
            writing.push(tokio::spawn(async move {
                persistent_writer(&log.writer(flush), &format!("w{writer}_")).await
            }));
        }
        let mut appended = Vec::new();
        for one in writing {
            appended.extend(one.await.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_each_once(kept, appended, &format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn writers_of_one_hour_take_turns_with_the_numbers() {
    let kept: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (first, second) = (Flaky::over(kept.clone()), Flaky::over(kept.clone()));
    let (a, b) =
        (log_in(first.clone()).writer(Flush::each()), log_in(second.clone()).writer(Flush::each()));
    for number in 0..30 {
        a.append(record(number, "a")).await.unwrap();
    }
    first.take_requests();
    // A writer that comes later finds its first number with one list, not with thirty puts.
    b.append(record(30, "b")).await.unwrap();
    let folder = "queue/2014/07/31/1800";
    let expected = [
        format!("put {folder}/000001.log"),
        format!("head {folder}/000001.log"),
        format!("list {folder}"),
        format!("put {folder}/000031.log"),
    ];
    assert_eq!(second.take_requests(), expected);
    // One number that was taken meanwhile: the next one.
    a.append(record(31, "a")).await.unwrap();
    let puts = [31, 32].map(|number| format!("{folder}/{number:06}.log"));
    let expected =
        [format!("put {}", puts[0]), format!("head {}", puts[0]), format!("put {}", puts[1])];
    assert_eq!(first.take_requests(), expected);
    let names: Vec<_> = kept.list(None).map(|found| found.unwrap().location).collect().await;
    assert_eq!(names.len(), 32);
}

#[tokio::test]
async fn records_of_many_tasks_are_all_there() {
    let (blobs, log) = in_memory();
    for flush in [Flush::each(), Flush::buffered().records(7)] {
        let before = texts(&log).await.len();
        let writer = log.writer(flush);
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let writer = writer.clone();
                tokio::spawn(async move { writer.append(record(number, "x")).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        writer.close().await.unwrap();
        assert_eq!(texts(&log).await.len(), before + 50);
    }
    assert!(blobs.count() > 50);
}

/// Writes eight blobs of one hour, each of five minutes from the sixth times its number on.
async fn eight_blobs(log: &BlobLog, filler: &str) {
    let writer = log.writer(Flush::buffered());
    for number in 0..8 {
        for second in [0, 150, 300] {
            writer.append(record(number * 360 + second, filler)).await.unwrap();
        }
        writer.flush().await.unwrap();
    }
}

fn kinds(requests: &[String]) -> Vec<(&str, usize)> {
    let kinds = ["list", "head", "edges", "get", "put"];
    let count = |kind| requests.iter().filter(|one| one.split(' ').next() == Some(kind)).count();
    kinds.map(|kind| (kind, count(kind))).into_iter().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn blobs_outside_of_the_window_are_not_read() {
    for lowers_names in [false, true] {
        let (blobs, log) = in_memory();
        eight_blobs(&log, "x").await;
        blobs.lowers_names.store(lowers_names, Ordering::SeqCst);
        blobs.take_requests();
        // Minute 12 begins the third blob, minute 17 ends it.
        let at = |second: i64| SIX + time::Duration::seconds(second);
        let tick = time::Duration::nanoseconds(100);
        for (from, to, gets, found) in [
            (at(740), at(800), 1, 0),
            (at(720), at(721), 1, 1),
            (at(1020), at(1020) + tick, 1, 1),
            (at(1020) + tick, at(1080), 0, 0),
            (at(700), at(720), 0, 0),
            (at(0), at(1080), 3, 9),
        ] {
            assert_eq!(log.read(from..to).collect().await.unwrap().len(), found, "{from} to {to}");
            let requests = blobs.take_requests();
            let mut expected = vec![("list", 1), ("head", 8), ("get", gets)];
            expected.retain(|(_, count)| *count > 0);
            assert_eq!(kinds(&requests), expected, "{from} to {to}");
        }
        // Of a whole hour every blob is wanted, so none is asked.
        assert_eq!(log.read(hour()).collect().await.unwrap().len(), 24);
        assert_eq!(kinds(&blobs.take_requests()), [("list", 1), ("get", 8)]);
        assert!(log.read(at(5)..at(5)).collect().await.unwrap().is_empty());
        assert!(blobs.take_requests().is_empty(), "an empty window asks nothing");
    }
}

#[tokio::test]
async fn a_directory_is_asked_for_first_and_last_lines() {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    let blobs = Flaky::over(files);
    let log = log_in(blobs.clone());
    eight_blobs(&log, &"x".repeat(4_000)).await;
    assert_eq!(kinds(&blobs.take_requests()), [("put", 9)], "the first put has metadata, in vain");
    let window = SIX + time::Duration::minutes(13)..SIX + time::Duration::minutes(15);
    assert_eq!(log.read(window.clone()).collect().await.unwrap().len(), 1);
    let requests = blobs.take_requests();
    assert_eq!(kinds(&requests), [("list", 1), ("head", 8), ("edges", 8), ("get", 1)]);
    // A field with a line break that pretends to be a later record hides nothing.
    let writer = log.writer(Flush::buffered());
    let text = format!("x\n2099-01-01T00:00:00Z;{}", "y".repeat(9_000));
    let at = SIX + time::Duration::minutes(14);
    for _ in 0..2 {
        writer.append(LogRecord::new(at, ["error", &text])).await.unwrap();
    }
    writer.close().await.unwrap();
    let found = log.read(window).filter(|r| r.field(0) == Some("error")).collect().await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].field(1), Some(text.as_str()));
}

#[tokio::test]
async fn a_damaged_line_is_an_error_at_its_place() {
    let (blobs, log) = in_memory();
    let line = |second: u32, text: &str| format!("2014-07-31T18:00:{second:02}Z;{text}\n");
    let folder = "queue/2014/07/31/1800";
    put(&*blobs, &format!("{folder}/000001.log"), &(line(1, "a") + "who knows\n" + &line(2, "b")))
        .await;
    put(
        &*blobs,
        &format!("{folder}/000002.log"),
        &(line(3, "\"c\nc\"") + "2014-07-31T18:00:04Z;hal"),
    )
    .await;
    put(&*blobs, &format!("{folder}/000003.log"), &line(5, "e")).await;
    // Neither a blob of this log nor of this hour.
    put(&*blobs, &format!("{folder}/notes.txt"), "no log").await;
    put(&*blobs, "queue/2014/07/31/1900/000001.log", &line(6, "f")).await;
    put(&*blobs, "queue2/2014/07/31/1800/000001.log", &line(7, "g")).await;
    let items: Vec<_> = log.read(hour()).stream().collect().await;
    let shown: Vec<String> = items
        .iter()
        .map(|item| match item {
            Ok(record) => record.field(0).unwrap().to_owned(),
            Err(error) => {
                assert!(error.is_corrupt(), "{error}");
                let damaged = error.source().unwrap().downcast_ref::<DamagedLine>().unwrap();
                assert!(error.to_string().contains(&damaged.blob().to_string()), "{error}");
                assert!(error.to_string().contains(&format!("line {}", damaged.line())), "{error}");
                assert!(!error.to_string().contains("who knows"), "no content in the message");
                format!("{} line {}", damaged.blob().number(), damaged.line())
            }
        })
        .collect();
    assert_eq!(shown, ["a", "1 line 2", "c\nc", "2 line 3", "e"]);
    assert!(log.read(hour()).collect().await.unwrap_err().is_corrupt());
}

#[tokio::test]
async fn the_error_of_a_request_is_the_last_item() {
    let (blobs, log) = in_memory();
    eight_blobs(&log, "x").await;
    let requests = blobs.count();
    let window = SIX..SIX + time::Duration::minutes(59);
    log.read(window.clone()).collect().await.unwrap();
    let needed = blobs.count() - requests;
    assert_eq!(needed, 1 + 8 + 8);
    for failing in 0..needed {
        let start = blobs.count();
        blobs.set_fates([(start + failing, Fate::Refused)]);
        let items: Vec<_> = log.read(window.clone()).stream().collect().await;
        assert_eq!(items.iter().filter(|item| item.is_err()).count(), 1, "request {failing}");
        let error = items.last().unwrap().as_ref().unwrap_err();
        assert!(
            error.is_backend() && error.to_string().contains("queue/2014/07/31/1800"),
            "{error}"
        );
        assert!(blobs.count() - start <= needed, "no request after the error");
    }
}

#[tokio::test]
async fn a_blob_that_goes_while_it_is_read_is_an_error_item() {
    let (blobs, log) = in_memory();
    let writer = log.writer(Flush::each());
    for second in 0..3 {
        writer.append(record(second, &second.to_string())).await.unwrap();
    }
    let mut items = log.read(hour()).stream();
    assert!(items.next().await.unwrap().is_ok());
    let gone = "queue/2014/07/31/1800/000003.log".into();
    blobs.delete_stream(futures_util::stream::iter([Ok(gone)]).boxed()).collect::<Vec<_>>().await;
    let rest: Vec<_> = items.collect().await;
    assert_eq!(rest.iter().filter(|item| item.is_ok()).count(), 1);
    let error = rest.iter().find_map(|item| item.as_ref().err()).unwrap();
    assert!(error.is_not_found() && error.to_string().contains("000003.log"), "{error}");
}

#[tokio::test]
async fn what_no_log_can_be_is_refused_before_a_request() {
    let (blobs, _) = in_memory();
    let client = Client::builder().backend(Memory::new()).blobs(blobs.clone()).build().unwrap();
    for name in ["", "Queue", "a/b", "..", "a b", &"x".repeat(64)] {
        let log = client.blob_log(name);
        for flush in [Flush::each(), Flush::buffered()] {
            let error = log.writer(flush).append(record(0, "x")).await.unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains("log name"), "{error}");
        }
        assert!(log.read(hour()).collect().await.unwrap_err().is_invalid());
    }
    let early = datetime!(0000-12-31 23:59 UTC);
    for flush in [Flush::each(), Flush::buffered()] {
        let writer = client.blob_log("queue").writer(flush);
        let error = writer.append(LogRecord::new(early, ["x"])).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("9999"), "{error}");
    }
    assert_eq!(blobs.count(), 0);
    let log = Client::memory().blob_log("queue");
    let error = log.writer(Flush::buffered()).append(record(0, "x")).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("blobs(..)"), "{error}");
    assert!(log.read(hour()).collect().await.unwrap_err().is_unsupported());
}

#[tokio::test]
async fn a_store_without_conditions_is_refused_by_its_name() {
    let (blobs, log) = in_memory();
    blobs.has_no_conditions.store(true, Ordering::SeqCst);
    for flush in [Flush::each(), Flush::buffered()] {
        let writer = log.writer(flush);
        let first = writer.append(record(0, "x")).await;
        let error = first.and(writer.flush().await).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("`Flaky`"), "{error}");
    }
    blobs.has_no_conditions.store(false, Ordering::SeqCst);
    assert!(texts(&log).await.is_empty());
}
