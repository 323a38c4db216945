//! Reads of one entity from a file and nothing else, for a counter of instructions:
//! `valgrind --tool=callgrind target/release/entable-benches get gets=20000`.

use std::hint::black_box;

use entable::{backend::EmbeddedOptions, prelude::*};

use crate::embedded::runtime;

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: i32,
}

/// Reads an entity that many times. The instructions of one read are the difference of two runs over the
/// difference of their reads.
pub(crate) fn run(gets: usize) {
    let directory = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = EmbeddedOptions::new().open(directory.path().join("staff.db")).unwrap();
        let staff = Client::builder().backend(store).build().unwrap().table::<Employee>();
        staff.create().await.unwrap();
        let don =
            Employee { department: "Sales".into(), id: 223, name: "Don Hall".into(), age: 34 };
        staff.insert(&don).await.unwrap();
        for _ in 0..gets {
            let point = Employee::primary().department("Sales").id(223);
            assert!(black_box(staff.get(point).await.unwrap()).is_some());
        }
    });
    println!("note  get {gets} reads");
}
