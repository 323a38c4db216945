//! Point reads and scans.

use std::{hint::black_box, time::Duration};

use entable::{
    Filter,
    backend::{Backend, Durability, Embedded, EmbeddedOptions, ReadRequest, ScanRequest},
    key::encode_sort_key,
};
use redb::{Database, ReadableDatabase, ReadableTable};

use super::fixture::{PARTITION_ROWS, RAW, fill, fill_raw, keys, raw, runtime, store};
use crate::figure::{figure, in_turns, note};

const ROWS: usize = 100_000;
const GETS: usize = 50_000;
const SCANS: usize = 200;

pub(crate) fn run() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let relaxed = Durability::Relaxed { delay: Duration::from_secs(1) };
    let options = EmbeddedOptions::new().durability(relaxed);
    let ours = store(&runtime, &directory.path().join("ours.db"), options);
    runtime.block_on(fill(&ours, 0..ROWS));
    runtime.block_on(ours.flush()).unwrap();
    let theirs = raw(&directory.path().join("raw.db"));
    fill_raw(&theirs, 0..ROWS);

    let (mine, own) = in_turns(|| runtime.block_on(gets(&ours)), || raw_gets(&theirs, false));
    figure("embedded.get", own.as_secs_f64() / mine.as_secs_f64(), ">= 0.6");
    note("embedded.get/s", GETS as f64 / mine.as_secs_f64());
    let (mine, own) = in_turns(|| runtime.block_on(gets(&ours)), || raw_gets(&theirs, true));
    note("embedded.get beside gets of one snapshot", own.as_secs_f64() / mine.as_secs_f64());

    let (mine, own) = in_turns(|| runtime.block_on(scans(&ours)), || raw_scans(&theirs));
    figure("embedded.scan_1000", own.as_secs_f64() / mine.as_secs_f64(), ">= 0.5");
    note("embedded.scan rows/s", (SCANS * 1000) as f64 / mine.as_secs_f64());
}

fn numbers(count: usize, below: usize) -> impl Iterator<Item = usize> {
    let mut state = 7_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap_or_default() % below
    })
    .take(count)
}

async fn gets(store: &Embedded) {
    for number in numbers(GETS, ROWS) {
        let (partition_key, row_key) = keys(number);
        let (partition_key, row_key) = (&*partition_key, &*row_key);
        let read = ReadRequest { table: "Rows", partition_key, row_key, select: None };
        let row = store.read(read).await.unwrap().unwrap();
        black_box(row);
    }
}

/// The engine's own way to get a row as bytes that outlive the call.
fn raw_gets(database: &Database, one_snapshot: bool) {
    let mut snapshot = None;
    for number in numbers(GETS, ROWS) {
        let (partition_key, row_key) = keys(number);
        let key = encode_sort_key(&partition_key, &row_key);
        let table = snapshot
            .take_if(|_| one_snapshot)
            .unwrap_or_else(|| database.begin_read().unwrap().open_table(RAW).unwrap());
        let value = table.get(&*key).unwrap().unwrap().value().to_vec();
        black_box(value);
        snapshot = Some(table);
    }
}

async fn scans(store: &Embedded) {
    for number in numbers(SCANS, ROWS / PARTITION_ROWS) {
        let (partition_key, _) = keys(number * PARTITION_ROWS);
        let filter = Filter::eq("PartitionKey", partition_key);
        let scan =
            ScanRequest { table: "Rows", filter: &filter, select: None, top: None, from: None };
        let page = store.scan(scan).await.unwrap();
        assert_eq!(page.rows.len(), 1000);
        black_box(page);
    }
}

fn raw_scans(database: &Database) {
    for number in numbers(SCANS, ROWS / PARTITION_ROWS) {
        let (partition_key, _) = keys(number * PARTITION_ROWS);
        let table = database.begin_read().unwrap().open_table(RAW).unwrap();
        let start = encode_sort_key(&partition_key, "");
        let mut rows = Vec::new();
        for item in ReadableTable::range::<&[u8]>(&table, &*start..).unwrap().take(1000) {
            rows.push(item.unwrap().1.value().to_vec());
        }
        black_box(rows);
    }
}
