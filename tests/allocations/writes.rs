//! Writes to a file: the insert of an entity without copies, and of one with a copy in its own partition and
//! one in another.

use entable::{backend::Embedded, prelude::*};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{Allocated, allocated};

/// A plain entity: one row, and nothing that its commit needs besides.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Plain {
    department: String,
    id: u32,
    name: String,
    age: i32,
}

/// An entity with a local and a remote copy.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "copied_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}"),
    index(ByName, partition_key = "name_{name}", row_key = "named_{department}_{id:06}")
)]
struct Copied {
    department: String,
    id: u32,
    name: String,
    age: i32,
}

/// A table of entities in a file, and a runtime to write them.
struct Staff<E> {
    table: Table<E>,
    runtime: Runtime,
    _directory: TempDir,
}

impl<E: TableEntity> Staff<E> {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Embedded::open(directory.path().join("staff.db")).unwrap();
        let table: Table<E> = Client::builder().backend(store).build().unwrap().table();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(table.create()).unwrap();
        Self { table, runtime, _directory: directory }
    }

    /// Inserts the entities, and returns what the last insert allocates on its thread. The ones before it
    /// register the partition.
    fn insert_all(&self, entities: [E; 4]) -> Allocated {
        let mut entities = entities.iter();
        let mut insert = || {
            let entity = entities.next().unwrap();
            drop(self.runtime.block_on(self.table.insert(entity)).unwrap());
        };
        insert();
        insert();
        // Two inserts, the second of which counts.
        allocated(insert)
    }
}

#[test]
fn an_insert_without_copies_allocates_its_row_and_its_request() {
    let plain = |id| Plain { department: "Sales".into(), id, name: "Hall".into(), age: 34 };
    let insert = Staff::new().insert_all([plain(1), plain(2), plain(3), plain(4)]);
    assert_eq!(insert, Allocated { count: 21, bytes: 3933 });
}

#[test]
fn an_insert_with_copies_allocates_their_rows_and_requests_too() {
    let copied = |id| Copied { department: "Sales".into(), id, name: "Hall".into(), age: 34 };
    let insert = Staff::new().insert_all([copied(1), copied(2), copied(3), copied(4)]);
    // The bytes vary with the numbers in the rows of the outbox, which are random.
    assert_eq!(insert.count, 143, "{insert:?}");
}
