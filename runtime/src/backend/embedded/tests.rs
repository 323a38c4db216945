//! Tests of commits: they call the code of the writer thread on the test's own thread.

use std::{path::Path, time::Duration};

use tokio::sync::oneshot;

use super::{
    Durability, EmbeddedOptions, job::QueuedBatch, open_file, store_file::StoreFile,
    writer_store::WriterStore,
};
use crate::{batch::Batch, batch::Operation, row::Row};

const DELAY: Duration = Duration::from_millis(20);

fn store(path: &Path) -> WriterStore {
    let file = StoreFile::new(path);
    let options = EmbeddedOptions::new().durability(Durability::Relaxed { delay: DELAY });
    let database = open_file::open_or_create(&file, 1024 * 1024).unwrap();
    let (mut store, _reader_state) = WriterStore::new(file, database, options).unwrap();
    store.create_table("Staff").unwrap();
    store
}

/// Returns a batch that inserts the row (p, r).
fn insert() -> QueuedBatch {
    let row = Row::build("p", "r").finish().unwrap();
    let batch = Batch::single("Staff", Operation::insert(row)).unwrap();
    let (answer, _) = oneshot::channel();
    let (table, operations) = (batch.table().to_owned(), batch.shared_operations());
    QueuedBatch { table, operations, deadline: None, answer }
}

#[test]
fn refused_writes_do_not_put_the_disk_off() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory.path().join("store.db"));
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_ok());
    assert!(store.unsynced.is_some(), "a relaxed write waits for its delay");
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_some(), "the delay is not over");
    std::thread::sleep(DELAY);
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_none(), "the write is on disk, though none came after it");
}
