//! Reads from a file: a point, a range, and each row of a range.

use entable::{backend::Embedded, prelude::*};
use futures_util::FutureExt;
use tempfile::TempDir;

use crate::{Allocated, allocated};

/// A plain entity: no copies, and nothing that its rows need besides.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: i32,
}

/// A table of 200 employees in a file.
struct Staff {
    table: Table<Employee>,
    _directory: TempDir,
}

fn employee(id: u32) -> Employee {
    Employee { department: "Sales".into(), id, name: format!("Hall {id:06}"), age: 34 }
}

fn staff() -> Staff {
    let directory = tempfile::tempdir().unwrap();
    let store = Embedded::open(directory.path().join("staff.db")).unwrap();
    let table = Client::builder().backend(store).build().unwrap().table();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        table.create().await.unwrap();
        table.bulk().insert_all((1..=200).map(employee)).await.unwrap().into_result().unwrap();
    });
    Staff { table, _directory: directory }
}

impl Staff {
    /// Reads one employee. A file answers at once, so that no runtime is needed.
    fn get(&self, id: u32) {
        let point = Employee::primary().department("Sales").id(id);
        let found = self.table.get(point).now_or_never().unwrap().unwrap();
        assert_eq!(found.map(Stored::into_inner), Some(employee(id)));
    }

    /// Reads the first employees.
    fn collect(&self, count: u32) {
        let range = Employee::primary().department("Sales").id_range(1..=count);
        let found = self.table.query(range).collect().now_or_never().unwrap().unwrap();
        assert_eq!(found.len(), count as usize);
    }
}

#[test]
fn a_get_allocates_its_keys_its_row_and_its_texts() {
    let staff = staff();
    // What the assertion itself compares with.
    let compared = allocated(|| drop(employee(7)));
    let get = allocated(|| staff.get(7));
    let get = Allocated { count: get.count - compared.count, bytes: get.bytes - compared.bytes };
    // Two keys of the path, the future of the verb and that of the store, the key that the file sorts
    // by, the row, two texts.
    assert_eq!(get, Allocated { count: 8, bytes: 1229 });
}

#[test]
fn scanned_rows_allocate_their_texts_and_share_the_rest() {
    let staff = staff();
    // Neither page grows for these 70 rows: both have room for 256.
    let (fewer, more) = (allocated(|| staff.collect(130)), allocated(|| staff.collect(200)));
    let rows = Allocated { count: more.count - fewer.count, bytes: more.bytes - fewer.bytes };
    // Two texts for each, and three pieces of memory that the rows share, each with a counter. Of the bytes, 184 for each
    // are its place among the items.
    assert_eq!(rows, Allocated { count: 146, bytes: 17192 });
}

#[test]
fn shown_rows_share_what_they_allocate() {
    let staff = staff();
    let show = |count: u32| {
        let range = Employee::primary().department("Sales").id_range(1..=count);
        let mut bytes = 0;
        let add = |row: RowView<'_, Employee>| {
            bytes += row.text(Employee::NAME)?.map_or(0, str::len);
            Ok(())
        };
        let shown = staff.table.query(range).for_each_ref(add).now_or_never().unwrap().unwrap();
        assert_eq!((shown, bytes), (count.into(), 11 * count as usize));
    };
    let (fewer, more) = (allocated(|| show(130)), allocated(|| show(200)));
    assert_eq!(more.count - fewer.count, 6, "three pieces and their counters for 70 rows");
}

#[test]
fn a_range_without_rows_allocates_its_plan() {
    let staff = staff();
    assert_eq!(allocated(|| staff.collect(0)), Allocated { count: 40, bytes: 3563 });
}
