//! The writer's work, step by step.

use std::{path::Path, time::Duration};

use tokio::sync::oneshot;

use super::{Durability, EmbeddedOptions, Place, job::Write, open, store::Store};
use crate::{batch::Batch, batch::Operation, row::Row};

const DELAY: Duration = Duration::from_millis(20);

fn store(path: &Path) -> Store {
    let place = Place::new(path);
    let options = EmbeddedOptions::new().durability(Durability::Relaxed { delay: DELAY });
    let database = open::open(&place, 1024 * 1024).unwrap();
    let (mut store, _readings) = Store::new(place, database, options).unwrap();
    store.create("Staff").unwrap();
    store
}

/// The insert of always the same row.
fn insert() -> Write {
    let row = Row::build("p", "r").finish().unwrap();
    let batch = Batch::single("Staff", Operation::insert(row)).unwrap();
    let (answer, _) = oneshot::channel();
    Write { table: batch.table().to_owned(), operations: batch.shared_operations(), answer }
}

#[test]
fn refused_writes_do_not_put_the_disk_off() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory.path().join("store.db"));
    assert!(store.commit(&[insert()]).unwrap().remove(0).is_ok());
    assert!(store.unsynced.is_some(), "a relaxed write waits for its delay");
    assert!(store.commit(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_some(), "the delay is not over");
    std::thread::sleep(DELAY);
    assert!(store.commit(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_none(), "the write is on disk, though none came after it");
}
