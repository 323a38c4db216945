//! Opens a stored file of the format, and checks its contents, so that no change of the format goes unnoticed.
//!
//! `ENTABLE_GOLDEN=path` writes such a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests stop where something is wrong"
)]

use std::{fs, path::Path, sync::Arc, time::Duration};

use entable::{
    Batch, Condition, Filter, Operation, Row, SteppedClock, Ticks, Value, ValueRef,
    backend::{Backend, Embedded, ScanRequest, TableRequest},
};
use uuid::Uuid;

/// 2014-08-22T00:50:32Z: every write of the files is one tick after the one before.
const START: i64 = 635_442_726_320_000_000;

fn values() -> Vec<(&'static str, Value)> {
    let ticks = |ticks| Value::DateTime(Ticks::new(ticks).unwrap());
    vec![
        ("Text", Value::String("gr\u{fc}n \u{1f600}".into())),
        ("Empty", Value::String(String::new())),
        ("Yes", Value::Boolean(true)),
        ("No", Value::Boolean(false)),
        ("Small", Value::Int32(i32::MIN)),
        ("Large", Value::Int64(i64::MAX)),
        ("Half", Value::Double(-0.5)),
        ("Nothing", Value::Double(f64::INFINITY)),
        ("When", ticks(START)),
        ("Early", ticks(Ticks::MIN_PROPERTY.get())),
        ("Id", Value::Guid(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff))),
        ("Bytes", Value::Binary(vec![0, 1, 254, 255].into())),
    ]
}

/// Addresses whose order tells UTF-16 units from code points.
const KEYS: [(&str, &str); 7] = [
    ("", ""),
    ("", "a"),
    ("Sales", ""),
    ("Sales", "empid_000223"),
    ("Sales\u{7e}", "r"),
    ("\u{1f600}", "r"),
    ("\u{ffee}", "r"),
];

fn row(keys: (&str, &str)) -> Row {
    let mut row = Row::build(keys.0, keys.1);
    for (name, value) in &values() {
        row.put(name, value.as_ref());
    }
    row.finish().unwrap()
}

/// Rows of one layout: with all properties, with some, and in another order.
fn rows_of_a_type() -> [Row; 3] {
    let with = |row_key: &str, values: &[&(&str, Value)]| {
        let mut row = Row::build("p", row_key);
        row.put("EntityType", ValueRef::String("Employee"));
        values.iter().for_each(|(name, value)| row.put(name, value.as_ref()));
        row.finish().unwrap()
    };
    let values = values();
    let all: Vec<_> = values.iter().collect();
    let some: Vec<_> = values.iter().step_by(2).collect();
    let turned: Vec<_> = values.iter().rev().collect();
    [with("all", &all), with("some", &some), with("turned", &turned)]
}

async fn all(store: &Embedded, table: &str) -> Vec<Row> {
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
    store.scan(scan).await.unwrap().into_rows().unwrap()
}

/// Writes the file.
async fn write(path: &Path) {
    let clock = Arc::new(SteppedClock::new(Ticks::new(START).unwrap()));
    let store = Embedded::options().clock(clock).open(path).unwrap();
    for table in ["Staff", "ARCHIVE", "Dropped", "Typed"] {
        store.tables(TableRequest::Create(table)).await.unwrap();
    }
    for keys in KEYS {
        let insert = Operation::insert(row(keys));
        store.apply(&Batch::single("Staff", insert).unwrap()).await.unwrap();
    }
    for row in rows_of_a_type() {
        store.apply(&Batch::single("Typed", Operation::insert(row)).unwrap()).await.unwrap();
    }
    for operation in [
        Operation::insert(row(("p", "gone"))),
        Operation::delete("p", "gone", Condition::Any).unwrap(),
    ] {
        store.apply(&Batch::single("Archive", operation).unwrap()).await.unwrap();
    }
    store.tables(TableRequest::Delete("Dropped")).await.unwrap();
    store.compact().await.unwrap();
}

/// Checks the rows that the file holds.
async fn check(path: &Path) {
    let clock = Arc::new(SteppedClock::new(Ticks::new(START).unwrap()));
    let store = Embedded::options().clock(clock).open(path).unwrap();
    store.verify().await.unwrap();
    let tables = store.tables(TableRequest::List { from: None, within: None }).await.unwrap();
    assert_eq!(tables.names, ["ARCHIVE", "Staff", "Typed"]);
    let rows = all(&store, "Staff").await;
    let keys: Vec<_> = rows.iter().map(|row| (row.partition_key(), row.row_key())).collect();
    assert_eq!(keys, KEYS);
    for (index, row) in rows.iter().enumerate() {
        let expected = START + i64::try_from(index).unwrap();
        assert_eq!(row.timestamp(), Ticks::new(expected));
        for (name, value) in &values() {
            assert_eq!(row.get(name).unwrap(), Some(value.as_ref()), "{name}");
        }
    }
    for (row, expected) in all(&store, "Typed").await.iter().zip(rows_of_a_type()) {
        assert_eq!(*row, expected.with_timestamp(row.timestamp().unwrap()), "{row:?}");
    }
    assert_eq!(all(&store, "Typed").await.len(), 3);
    assert!(all(&store, "archive").await.is_empty());

    // The clock stands at the start; the deleted row's Timestamp is not given again.
    let insert = Operation::insert(row(("p", "gone")));
    store.apply(&Batch::single("Archive", insert).unwrap()).await.unwrap();
    let back = all(&store, "Archive").await.remove(0);
    let gone = START + i64::try_from(KEYS.len() + rows_of_a_type().len()).unwrap() + 1;
    assert!(back.timestamp() > Ticks::new(gone), "{:?}", back.timestamp());
}

#[tokio::test]
async fn the_stored_file_opens() {
    if let Some(path) = std::env::var_os("ENTABLE_GOLDEN") {
        write(Path::new(&path)).await;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/format-1.db");
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("store.db");
    fs::copy(golden, &copy).unwrap();
    check(&copy).await;
}

#[tokio::test]
async fn this_version_writes_what_it_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("now.db");
    write(&path).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    check(&path).await;
}
