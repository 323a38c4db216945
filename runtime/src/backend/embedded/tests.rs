//! Tests of commits and maintenance: they call the code of the writer thread on the test's own thread.

use std::{fs, path::Path, time::Duration};

use tokio::sync::oneshot;

use super::{
    Durability, EmbeddedOptions, job::QueuedBatch, open_file, snapshot::ReaderState,
    store_file::StoreFile, writer_store::WriterStore,
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

fn is_readable(store: &WriterStore) -> bool {
    matches!(&*store.reader_state.borrow(), ReaderState::Open(_))
}

/// Returns a store that could not reopen its file, with the file back in its place.
fn store_without_its_file(path: &Path) -> WriterStore {
    let mut store = store(path);
    let away = path.with_extension("away");
    // Closed first, because not every system renames open files.
    store.database = None;
    fs::rename(path, &away).unwrap();
    store.reopen_file().unwrap_err();
    assert!(!is_readable(&store));
    fs::rename(away, path).unwrap();
    store
}

#[test]
fn maintenance_opens_a_file_again_that_did_not_open_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_without_its_file(&directory.path().join("store.db"));
    assert_eq!(store.time_to_maintenance(), Some(Duration::ZERO));
    store.run_maintenance_step();
    assert!(is_readable(&store));
    assert_eq!(store.time_to_maintenance(), None, "nothing is left to do");
}

#[test]
fn a_file_that_stays_away_is_tried_after_a_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_without_its_file(&path);
    fs::remove_file(&path).unwrap();
    store.run_maintenance_step();
    let rest = store.time_to_maintenance().unwrap();
    assert!(rest > Duration::from_millis(500), "a thread that tries without a pause: {rest:?}");
}

#[test]
fn a_flush_opens_a_file_again_that_did_not_open_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_without_its_file(&path);
    store.flush_commits().unwrap();
    assert!(is_readable(&store));
    let mut store = store_without_its_file(&directory.path().join("other.db"));
    fs::remove_file(directory.path().join("other.db")).unwrap();
    assert!(store.flush_commits().unwrap_err().is_not_found());
}
