//! Runs tasks that write one set of rows at one time, under ETags.

use std::{collections::HashMap, sync::Arc};

use entable::{
    Batch, Condition, ETag, Filter, Operation, Row, ValueRef,
    backend::{Backend, ReadRequest, ScanRequest, TableRequest},
};

const TASKS: usize = 8;
const WRITES: usize = 60;
const ROWS: usize = 3;

fn row(key: usize, count: i32) -> Row {
    let row = Row::build("p", &key.to_string());
    row.with("Count", ValueRef::Int32(count)).and_then(entable::RowBuilder::finish).expect("a row")
}

fn count(row: &Row) -> i32 {
    match row.get("Count") {
        Ok(Some(ValueRef::Int32(count))) => count,
        other => panic!("the count is {other:?}"),
    }
}

async fn read(backend: &dyn Backend, key: usize) -> (Row, ETag) {
    let key = key.to_string();
    let read = ReadRequest { table: "Counters", partition_key: "p", row_key: &key, select: None };
    let row = backend.read(read).await.expect("the row can be read").expect("the row is there");
    let etag = row.etag().expect("a stored row has a version");
    (row, etag)
}

/// A table with a few rows, each with that count; their versions.
async fn start(backend: &dyn Backend, with: i32) -> Vec<ETag> {
    backend.tables(TableRequest::Create("Counters")).await.expect("created");
    let mut batch = Batch::new("Counters");
    for key in 0..ROWS {
        batch.push(Operation::insert(row(key, with))).expect("the batch takes it");
    }
    let written = backend.apply(&batch).await.expect("inserted");
    written.into_iter().map(|written| written.etag.expect("an insert has a version")).collect()
}

fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("one")
}

/// A small generator, so that tasks act differently without separate code.
fn next(seed: &mut usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// A write that succeeded: which row, from which version to which.
type Step = (usize, ETag, ETag);

/// Increments counters under the version that was read; the steps that succeeded.
async fn increment(backend: Arc<dyn Backend>, mut seed: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..WRITES {
        let key = next(&mut seed) % ROWS;
        let (current, from) = read(&*backend, key).await;
        let write =
            Operation::replace(row(key, count(&current) + 1), Condition::Match(from.clone()));
        let batch = Batch::single("Counters", write).expect("a batch");
        match backend.apply(&batch).await {
            Ok(written) => steps.push((key, from, written[0].etag.clone().expect("a version"))),
            Err(error) => assert!(error.is_precondition_failed(), "{error}"),
        }
    }
    steps
}

/// The writes that succeeded are one chain of versions for each row, from the first to the one that
/// is there in the end: no version was replaced twice, and none was lost.
pub(crate) fn one_winner_per_version(backend: impl Fn() -> Arc<dyn Backend>, times: u32) {
    let threads = threads();
    for time in 0..times as usize {
        let backend = backend();
        threads.block_on(async {
            let first = start(&*backend, 0).await;
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| tokio::spawn(increment(backend.clone(), time * TASKS + task)))
                .collect();
            let mut chains: HashMap<(usize, ETag), ETag> = HashMap::new();
            for task in tasks {
                for (key, from, to) in task.await.expect("the task ends") {
                    let other = chains.insert((key, from), to);
                    assert!(other.is_none(), "a version of row {key} was replaced twice");
                }
            }
            for (key, first) in first.into_iter().enumerate() {
                let (row, last) = read(&*backend, key).await;
                let (mut at, mut length) = (first, 0);
                while let Some(to) = chains.remove(&(key, at.clone())) {
                    (at, length) = (to, length + 1);
                }
                assert_eq!((at, length), (last, count(&row)), "row {key}");
            }
            assert!(chains.is_empty(), "writes to versions that nobody read: {chains:?}");
        });
    }
}

/// Takes from one row and gives to another in one transaction, under both versions.
async fn transfer(backend: Arc<dyn Backend>, mut seed: usize) {
    for _ in 0..WRITES {
        let from = next(&mut seed) % ROWS;
        let to = (from + 1 + next(&mut seed) % (ROWS - 1)) % ROWS;
        let (a, a_version) = read(&*backend, from).await;
        let (b, b_version) = read(&*backend, to).await;
        let mut batch = Batch::new("Counters");
        for (key, count, version) in
            [(from, count(&a) - 1, a_version), (to, count(&b) + 1, b_version)]
        {
            let write = Operation::replace(row(key, count), Condition::Match(version));
            batch.push(write).expect("the batch takes it");
        }
        if let Err(error) = backend.apply(&batch).await {
            assert!(error.is_precondition_failed(), "{error}");
            assert!(error.failed_index().is_some_and(|index| index < 2), "{error}");
        }
    }
}

/// Every page that is read meanwhile shows the same sum.
async fn watch(backend: Arc<dyn Backend>, sum: i32) {
    let filter = Filter::eq("PartitionKey", "p");
    for _ in 0..WRITES {
        let scan =
            ScanRequest { table: "Counters", filter: &filter, select: None, top: None, from: None };
        let page = backend.scan(scan).await.expect("the page can be read");
        if page.next.is_none() {
            let rows = page.into_rows().expect("each row decodes");
            assert_eq!(rows.iter().map(count).sum::<i32>(), sum);
        }
        tokio::task::yield_now().await;
    }
}

/// Transactions that move a count from row to row leave the sum, at any time that it is looked at.
pub(crate) fn transfers_keep_the_sum(backend: impl Fn() -> Arc<dyn Backend>, times: u32) {
    const EACH: i32 = 100;
    let sum = EACH * i32::try_from(ROWS).expect("a small number");
    let threads = threads();
    for time in 0..times as usize {
        let backend = backend();
        threads.block_on(async {
            start(&*backend, EACH).await;
            let mut tasks: Vec<_> = (0..TASKS)
                .map(|task| tokio::spawn(transfer(backend.clone(), time * TASKS + task)))
                .collect();
            tasks.extend((0..2).map(|_| tokio::spawn(watch(backend.clone(), sum))));
            for task in tasks {
                task.await.expect("the task ends");
            }
            watch(backend, sum).await;
        });
    }
}
