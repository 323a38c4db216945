//! Tests types that read rows by the columns that these share in a file: several types over the same rows, and types with
//! very many properties.

use std::sync::Arc;

use entable::{
    backend::{Backend, Embedded, Memory, ReadRequest},
    prelude::*,
};

/// Declares a type of the same rows, with its fields in an order of its own.
macro_rules! reader {
    ($name:ident { $($field:ident: $ty:ty),* }) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = "Staff",
            entity_type = "Employee",
            partition_key = "{department}",
            row_key = "{id:06}"
        )]
        struct $name {
            department: String,
            id: u32,
            $($field: $ty),*
        }
    };
}

reader!(First { age: Option<i32>, name: String, email: Option<String> });
reader!(Second { name: String, age: Option<i32>, email: Option<String> });
reader!(Third { email: Option<String>, age: Option<i32>, name: String });
reader!(Fourth { name: String });
reader!(Fifth { email: Option<String>, name: String, age: Option<i32> });
reader!(Sixth { age: Option<i32>, missing: Option<i64>, email: Option<String>, name: String });

fn first(id: u32) -> First {
    First {
        department: "Sales".into(),
        id,
        age: (!id.is_multiple_of(3)).then_some(30 + i32::try_from(id).unwrap()),
        name: format!("Hall {id}"),
        email: (!id.is_multiple_of(2)).then(|| format!("h{id}@contoso.com")),
    }
}

#[tokio::test]
async fn six_types_read_the_rows_of_one_layout() {
    let directory = tempfile::tempdir().unwrap();
    let store = Embedded::open(directory.path().join("staff.db")).unwrap();
    let client = Client::builder().backend(store).build().unwrap();
    let staff = client.table::<First>();
    staff.create().await.unwrap();
    staff.bulk().insert_all((0..40).map(first)).await.unwrap().into_result().unwrap();
    // Each more than once: later types find no place among those that the layout knows.
    for _ in 0..2 {
        macro_rules! read_as {
            ($name:ident, $($field:ident),*) => {
                let path = $name::primary().department("Sales");
                let read = client.table::<$name>().query(path).collect().await.unwrap();
                assert_eq!(read.len(), 40);
                for (read, id) in read.iter().zip(0..) {
                    let stored = first(id);
                    assert_eq!(($(&read.$field,)*), ($(&stored.$field,)*), "{id}");
                }
            };
        }
        read_as!(First, age, name, email);
        read_as!(Second, age, name, email);
        read_as!(Third, age, name, email);
        read_as!(Fourth, name);
        read_as!(Fifth, age, name, email);
        read_as!(Sixth, age, name, email);
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counts", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Year {
    department: String,
    id: u32,
    note: Option<String>,
    #[table(series("Day{:03}"))]
    days: [Option<i64>; 365],
}

/// A row has at most 252 properties, but the type has a name for each day.
#[tokio::test]
async fn a_type_of_366_names_reads_a_part_as_from_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = Embedded::open(directory.path().join("counts.db")).unwrap();
    let file = Arc::new(file);
    let memory = Arc::new(Memory::new());
    let year = Year {
        department: "Sales".into(),
        id: 7,
        note: Some("leap".into()),
        days: std::array::from_fn(|day| Some(i64::try_from(day).unwrap() * 11)),
    };
    for client in
        [Client::builder().backend(file.clone()), Client::builder().backend(memory.clone())]
    {
        let years = client.build().unwrap().table::<Year>();
        years.create().await.unwrap();
        years.insert(&year).await.unwrap();
    }
    let first_part =
        ReadRequest { table: "Counts", partition_key: "Sales", row_key: "000007_01", select: None };
    let (stored, expected) = (file.read(first_part).await, memory.read(first_part).await);
    let [stored, expected] = [stored, expected].map(|row| Year::from_row(&row.unwrap().unwrap()));
    let stored = stored.unwrap();
    assert_eq!(stored, expected.unwrap());
    assert_eq!(stored.days.iter().flatten().count(), 183, "the days of the first part");
}
