//! Tests the embedded store alone: opening, durability, many tasks, tables, a full disk.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests stop where something is wrong"
)]

mod at_once;
mod copied_blobs;
mod data;
mod disk;
mod durability;
mod etags;
mod files;
mod journal;
mod layouts;
mod marks;
mod processes;
mod shared_columns;
mod space;
mod tasks;
mod verify_copy;

use std::{
    fs,
    path::{Path, PathBuf},
};

use entable::{
    Batch, Filter, Operation, Row, ValueRef,
    backend::{Backend, Embedded, ReadRequest, ScanRequest, TableRequest},
};
use tempfile::TempDir;

/// A directory and the path of a store in it.
fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

/// Copies the file of an open store, and its journal, as a crash leaves them.
fn copy_as_crashed(path: &Path, copy: &Path) {
    fs::copy(path, copy).unwrap();
    let journal_of = |path: &Path| PathBuf::from(format!("{}.journal", path.display()));
    drop(fs::remove_file(journal_of(copy)));
    if journal_of(path).exists() {
        fs::copy(journal_of(path), journal_of(copy)).unwrap();
    }
}

fn row(partition_key: &str, row_key: &str, number: i64) -> Row {
    let mut row = Row::build(partition_key, row_key);
    row.put("Number", ValueRef::Int64(number));
    row.finish().unwrap()
}

async fn create(store: &Embedded, table: &str) {
    store.tables(TableRequest::Create(table)).await.unwrap();
}

async fn delete(store: &Embedded, table: &str) {
    store.tables(TableRequest::Delete(table)).await.unwrap();
}

async fn insert(store: &Embedded, table: &str, row: Row) -> entable::Result<()> {
    store.apply(&Batch::single(table, Operation::insert(row)).unwrap()).await.map(drop)
}

/// Inserts rows of one partition, a hundred per transaction.
async fn fill(store: &Embedded, table: &str, partition_key: &str, rows: i64) {
    let numbers: Vec<i64> = (0..rows).collect();
    for numbers in numbers.chunks(100) {
        let mut batch = Batch::new(table);
        for number in numbers {
            let insert = Operation::insert(row(partition_key, &format!("{number:08}"), *number));
            batch.push(insert).unwrap();
        }
        store.apply(&batch).await.unwrap();
    }
}

async fn read(store: &Embedded, table: &str, row_key: &str) -> entable::Result<Option<Row>> {
    store.read(ReadRequest { table, partition_key: "p", row_key, select: None }).await
}

/// How many rows there are, page by page.
async fn count(store: &Embedded, table: &str) -> usize {
    let filter = Filter::Constant(true);
    let mut from = None;
    let mut count = 0;
    loop {
        let scan =
            ScanRequest { table, filter: &filter, select: None, top: None, from: from.as_ref() };
        let page = store.scan(scan).await.unwrap();
        count += page.rows.len();
        from = page.next;
        if from.is_none() {
            return count;
        }
    }
}
