//! Tells types apart by a prefix of the RowKey alone: `EMPLOYEE_000123` and `DEPARTMENT_000123`.
//!
//! Rows get no property `EntityType` then. A range of keys gives one type, and the compiler checks that the
//! prefixes cannot meet.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "EMPLOYEE_{id:06}",
    discriminator = row_key
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "DEPARTMENT_{id:06}",
    discriminator = row_key
)]
struct Department {
    department: String,
    id: u32,
    employee_count: i32,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
enum StaffRow {
    Employee(Employee),
    Department(Department),
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let staff = client.set::<StaffRow>("Staff");
    let sales = || "Sales".to_owned();

    // Equal ids of two types do not collide, and one transaction writes both.
    let mut egt = staff.transaction();
    for id in [123, 124] {
        egt.insert(&Employee { department: sales(), id, name: format!("No. {id}") })?;
    }
    egt.insert(&Department { department: sales(), id: 123, employee_count: 2 })?;
    egt.commit().await?;

    // One query reads all rows of the partition. The key alone says which type a row has.
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    for row in &rows {
        println!("{}: {}", row.row_key(), row.member_name());
        assert!(row.row().get("EntityType")?.is_none());
    }
    let names: Vec<_> = rows.iter().map(|row| row.member_name()).collect();
    assert_eq!(names, ["Department", "Employee", "Employee"]);

    // The prefix becomes a range, which meets no other type.
    let employees = client.table::<Employee>();
    let query = employees.query(Employee::primary().department("Sales"));
    println!("{}", query.explain());
    assert_eq!(
        query.explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'EMPLOYEE_') and (RowKey lt 'EMPLOYEE`')"
    );
    assert_eq!(query.collect().await?.len(), 2);
    Ok(())
}
