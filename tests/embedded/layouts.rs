//! Tests the layouts of rows in the file: they survive, are bounded, and a damaged one damages its rows alone.

use std::path::Path;

use entable::{
    Batch, Error, Operation, Row, ValueRef,
    backend::{Backend, Embedded, ReadRequest},
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{count, create, delete, insert, scratch};

const LAYOUTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("entable.layouts");

/// Returns a row of a kind of its own, whose only property has the name.
fn row_of_kind(row_key: &str, name: &str) -> Row {
    let mut row = Row::build("p", row_key);
    row.put(name, ValueRef::Int32(7));
    row.finish().unwrap()
}

/// Returns the ids and bytes of the layouts in a closed file.
fn layouts(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let database = Database::open(path).unwrap();
    let table = database.begin_read().unwrap().open_table(LAYOUTS).unwrap();
    let layouts = table.iter().unwrap().map(|item| {
        let (id, bytes) = item.unwrap();
        (id.value(), bytes.value().to_vec())
    });
    layouts.collect()
}

/// Changes the layout of an id in a closed file.
fn replace_layout(path: &Path, id: u32, bytes: Option<&[u8]>) {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(LAYOUTS).unwrap();
        match bytes {
            Some(bytes) => drop(table.insert(id, bytes).unwrap()),
            None => drop(table.remove(id).unwrap()),
        }
    }
    transaction.commit().unwrap();
    drop(database);
    // The commit has no mark.
    drop(std::fs::remove_file(path.with_extension("db.mark")));
}

async fn read(store: &Embedded, row_key: &str) -> Result<Option<Row>, Error> {
    store.read(ReadRequest { table: "Staff", partition_key: "p", row_key, select: None }).await
}

#[tokio::test]
async fn ids_of_layouts_are_not_given_twice() {
    let (_directory, path) = scratch();
    for (table, name) in [("First", "A"), ("Second", "B"), ("First", "A"), ("Third", "C")] {
        let store = Embedded::open(&path).unwrap();
        create(&store, table).await;
        insert(&store, table, row_of_kind("r", name)).await.unwrap();
        delete(&store, table).await;
        store.compact().await.unwrap();
    }
    // No row is left, and each layout is: a row on a page that a damaged file still has would read by another one.
    let layouts = layouts(&path);
    assert_eq!(layouts.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_damaged_or_missing_layout_damages_its_rows_alone() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row_of_kind("sound", "A")).await.unwrap();
    insert(&store, "Staff", row_of_kind("damaged", "B")).await.unwrap();
    drop(store);
    let stored = layouts(&path);
    let (first, second) = (&stored[0], &stored[1]);
    let renamed: Vec<u8> =
        second.1.iter().map(|byte| if *byte == b'B' { b'C' } else { *byte }).collect();
    let damages = [None, Some(&renamed), Some(&first.1), Some(&vec![])];
    for (number, bytes) in damages.into_iter().enumerate() {
        replace_layout(&path, second.0, bytes.map(|bytes| &**bytes));
        let store = Embedded::open(&path).unwrap();
        assert!(read(&store, "sound").await.unwrap().is_some());
        let error = read(&store, "damaged").await.unwrap_err();
        assert!(error.is_corrupt() && error.keys() == Some(("p", "damaged")), "{error:?}");
        assert!(error.to_string().contains("layout 1 "), "{error}");
        let backup = path.with_extension("backup");
        assert!(store.backup(&backup).await.unwrap_err().is_corrupt() && !backup.exists());
        let error = store.verify_copy().await.unwrap_err();
        assert!(error.is_corrupt() && error.keys() == Some(("p", "damaged")), "{error:?}");
        assert!(error.to_string().contains("layout 1 "), "{error}");
        // A write does not overwrite the damaged layout. If it is missing, an equal one gets its id.
        insert(&store, "Staff", row_of_kind(&format!("later {number}"), "B")).await.unwrap();
        drop(store);
        replace_layout(&path, second.0, Some(&second.1));
        let store = Embedded::open(&path).unwrap();
        assert!(read(&store, "damaged").await.unwrap().is_some());
        assert_eq!(count(&store, "Staff").await, 3 + number);
    }
}

#[tokio::test]
async fn a_backup_has_the_layouts_of_its_rows() {
    let (_directory, path) = scratch();
    let backup = path.with_extension("backup");
    let store = Embedded::open(&path).unwrap();
    for (table, name) in [("Dropped", "A"), ("Staff", "B"), ("Other", "C"), ("Third", "B")] {
        create(&store, table).await;
        insert(&store, table, row_of_kind("r", name)).await.unwrap();
    }
    delete(&store, "Dropped").await;
    let before = read(&store, "r").await.unwrap();
    store.backup(&backup).await.unwrap();
    drop(store);
    // Ids of tables are others in the backup, ids of layouts are the same.
    assert_eq!(layouts(&backup), layouts(&path)[1..]);
    let store = Embedded::open(&backup).unwrap();
    assert_eq!(read(&store, "r").await.unwrap(), before);
    insert(&store, "Staff", row_of_kind("new", "D")).await.unwrap();
    for table in ["Staff", "Other", "Third"] {
        assert_eq!(count(&store, table).await, if table == "Staff" { 2 } else { 1 });
    }
    store.verify_copy().await.unwrap();
    drop(store);
    assert_eq!(layouts(&backup).last().unwrap().0, 4, "the id of a layout was given twice");
}

/// A client that invents names fills the budget of its table, and no row of it or of others is lost.
#[tokio::test]
async fn invented_names_fill_a_bounded_part_of_the_dictionary() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row_of_kind("known", "Known")).await.unwrap();
    let numbers: Vec<usize> = (0..200).collect();
    for numbers in numbers.chunks(100) {
        let mut batch = Batch::new("Staff");
        for number in numbers {
            let row = row_of_kind(&format!("{number}"), &format!("Invented{number}"));
            batch.push(Operation::insert(row)).unwrap();
        }
        store.apply(&batch).await.unwrap();
    }
    insert(&store, "Staff", row_of_kind("known later", "Known")).await.unwrap();
    drop(store);
    assert_eq!(layouts(&path).len(), 64);
    let store = Embedded::open(&path).unwrap();
    assert_eq!(count(&store, "Staff").await, 202);
    for number in [0, 62, 63, 199] {
        let row = read(&store, &format!("{number}")).await.unwrap().unwrap();
        assert_eq!(row.get(&format!("Invented{number}")).unwrap(), Some(ValueRef::Int32(7)));
    }
    store.verify_copy().await.unwrap();
}
