//! Changes a struct twice, over a table that holds rows of all its versions.
//!
//! Each older version keeps its struct; a conversion leads from each to the next. Every read returns
//! the current struct, every write stores the current version, and `upgrade_all` rewrites old rows.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::num::ParseIntError;

use entable::prelude::*;

mod v1 {
    use entable::TableEntity;

    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee"
    )]
    pub struct Employee {
        pub department: String,
        pub id: u32,
        pub name: String,
        pub age: String,
    }
}

mod v2 {
    use entable::TableEntity;

    /// Version 2: the age is a number.
    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        version = 2,
        upgrade_from(super::v1::Employee)
    )]
    pub struct Employee {
        pub department: String,
        pub id: u32,
        pub name: String,
        pub age: i32,
    }
}

/// Version 3: the name is split in two, with an index over the last name.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 3,
    upgrade_from(v2::Employee),
    index(ByName, row_key = "name_{last_name}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
}

impl TryFrom<v1::Employee> for v2::Employee {
    type Error = ParseIntError;

    fn try_from(old: v1::Employee) -> Result<Self, ParseIntError> {
        let v1::Employee { department, id, name, age } = old;
        Ok(Self { department, id, name, age: age.parse()? })
    }
}

impl From<v2::Employee> for Employee {
    fn from(old: v2::Employee) -> Self {
        let (first, last) = old.name.split_once(' ').unwrap_or(("", &old.name));
        let (first_name, last_name) = (first.to_owned(), last.to_owned());
        Self { department: old.department, id: old.id, first_name, last_name, age: old.age }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let old = |id: u32, age: &str| v1::Employee {
        department: "Sales".into(),
        id,
        name: "Don Hall".into(),
        age: age.into(),
    };
    let rows = (1..=150).map(|id| old(id, "34"));
    client.bulk().insert_all(rows).await?.into_result()?;
    client.table::<v1::Employee>().insert(&old(999, "unknown")).await?;

    // An old row is read as the current struct, and stored in the current version when it is written.
    let staff: Table<Employee> = client.table();
    let don = || Employee::primary().department("Sales").id(1);
    let stored_type = async || -> Result<Option<String>, Error> {
        let row = client.dynamic("Staff").get("Sales", "empid_000001").await?;
        Ok(row.and_then(|row| row.entity_type().map(str::to_owned)))
    };
    println!("stored as {:?}", stored_type().await?);
    assert_eq!(stored_type().await?.as_deref(), Some("Employee"));
    let birthday = |employee: &mut Employee| {
        employee.age += 1;
        Ok(())
    };
    let found = staff.update(don(), birthday).await?;
    assert_eq!((found.last_name.as_str(), found.age), ("Hall", 35));
    println!("after an update: {:?}, age {}", stored_type().await?, found.age);
    assert_eq!(stored_type().await?.as_deref(), Some("Employee.v3"));

    // `upgrade_all` rewrites the other rows, a hundred at a time. The report has rows that cannot be
    // converted.
    let report = staff.upgrade_all().page_size(100).on_progress(|p| assert!(p.done <= 149)).await?;
    println!("upgraded {} rows, {} cannot be converted", report.done, report.failed.len());
    assert_eq!((report.done, report.failed.len()), (149, 1));
    let failed = report.failed.first().and_then(|failure| failure.error.keys());
    assert_eq!(failed, Some(("Sales", "empid_000999")));
    let by_name = staff.query(Employee::by_name().department("Sales").last_name("Hall"));
    assert_eq!(by_name.collect().await?.len(), 150, "the new index holds them");

    // A row of a newer version than the program knows is an error.
    let newer = DynamicEntity::new("Sales", "empid_001000").with("EntityType", "Employee.v4");
    client.dynamic("Staff").insert(&newer).await?;
    let unknown = staff.get(Employee::primary().department("Sales").id(1000)).await;
    if let Err(error) = &unknown {
        println!("a newer version: {error}");
    }
    assert!(unknown.is_err_and(|error| error.is_unrecognized_entity()));
    Ok(())
}
