//! Keeps several types in one partition: a department and its employees.
//!
//! An entity group transaction writes rows of one PartitionKey together or not at all, whatever their
//! types. Therefore the count of employees in the department's row is always right.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    employees: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

fn employee(id: u32, last_name: &str) -> Employee {
    Employee { department: "Sales".into(), id, last_name: last_name.into() }
}

/// Inserts an employee and counts it in its department: one read, then one transaction.
async fn hire(client: &Client, employee: &Employee) -> Result<(), Error> {
    let departments: Table<Department> = client.table();
    let department = Department::primary().name(&employee.department);
    let Some(mut department) = departments.get(department).await? else {
        let name = employee.department.clone();
        let mut egt = client.transaction();
        egt.insert(&Department { name, employees: 1 })?.insert(employee)?;
        return egt.commit().await.map(drop);
    };
    department.employees += 1;
    let mut egt = client.transaction();
    egt.replace(&department)?.insert(employee)?;
    egt.commit().await.map(drop)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let employees: Table<Employee> = client.table();
    let departments: Table<Department> = client.table();
    employees.create().await?;

    hire(&client, &employee(1, "Jones")).await?;
    hire(&client, &employee(2, "Smith")).await?;
    let sales = || Department::primary().name("Sales");
    let count = departments.get(sales()).await?.map(|d| d.employees);
    println!("hired two; the department counts {count:?}");
    assert_eq!(count, Some(2));

    // Employee 2 exists: the transaction fails as a whole, and the department is not counted up.
    let conflict = hire(&client, &employee(2, "Brown")).await;
    if let Err(error) = &conflict {
        println!("refused: {error}");
    }
    assert!(conflict.is_err_and(|error| error.is_conflict() && error.failed_index() == Some(1)));
    assert_eq!(departments.get(sales()).await?.map(|d| d.employees), Some(2));

    // A query of one type skips rows of the other type in the partition.
    let in_sales = employees.query(Employee::primary().department("Sales"));
    let names: Vec<String> =
        in_sales.collect().await?.into_iter().map(|e| e.into_inner().last_name).collect();
    println!("employees: {names:?}");
    assert_eq!(names, ["Jones", "Smith"]);

    // A query without a type returns all rows.
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
    let types: Vec<_> = rows.iter().map(|row| row.entity_type()).collect();
    println!("rows without a type: {types:?}");
    assert_eq!(types, [Some("Department"), Some("Employee"), Some("Employee")]);

    // A row of another partition is refused when it is added, before anything is sent.
    let mut egt = client.transaction();
    egt.insert(&employee(3, "Miller"))?;
    let in_marketing = Employee { department: "Marketing".into(), ..employee(4, "Baker") };
    let refused = egt.insert(&in_marketing).err();
    if let Some(error) = &refused {
        println!("refused: {error}");
    }
    assert_eq!(
        refused.and_then(|error| error.code().map(ToOwned::to_owned)).as_deref(),
        Some("CommandsInBatchActOnDifferentPartitions")
    );
    Ok(())
}
