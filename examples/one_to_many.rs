//! Stores departments and their employees in the three ways of the design guide, side by side, and
//! counts what each costs.
//!
//! A request is one message to the store. An entity group transaction is one request that writes up to
//! 100 rows of one partition, all or none.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

const DEPARTMENTS: u32 = 200;
const EMPLOYEES: u32 = 100;

/// Variant 1: both types in one partition of one table. The PartitionKey is the link.
mod together {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Together", partition_key = "{name}", row_key = "department")]
    pub(crate) struct Department {
        pub(crate) name: String,
        pub(crate) employees: u32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Together", partition_key = "{department}", row_key = "empid_{id:06}")]
    pub(crate) struct Employee {
        pub(crate) department: String,
        pub(crate) id: u32,
    }
}

/// Variant 2: tables of their own, a partition for each employee. The load spreads.
mod apart {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Departments", partition_key = "{name}", row_key = "department")]
    pub(crate) struct Department {
        pub(crate) name: String,
        pub(crate) employees: u32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Employees", partition_key = "{id:06}", row_key = "employee")]
    pub(crate) struct Employee {
        pub(crate) id: u32,
        pub(crate) department: String,
    }
}

/// Variant 3: one type. Each employee carries what is needed of its department.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Merged", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Merged {
    department: String,
    id: u32,
    manager: String,
}

/// Returns tens of thousands of employees: the number of the department, and that of the employee.
fn everybody() -> impl Iterator<Item = (String, u32)> + Send {
    let of = |d| (0..EMPLOYEES).map(move |n| (format!("Department {d:03}"), d * EMPLOYEES + n));
    (0..DEPARTMENTS).flat_map(of)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    for table in ["Together", "Departments", "Employees", "Merged"] {
        client.create_table(table).await?;
    }
    let requests = |what: &str| println!("  {what}: {} requests", recorder.take().len());
    recorder.clear();

    println!("1. one partition for a department and its employees");
    let all = everybody().map(|(department, id)| together::Employee { department, id });
    client.bulk().insert_all(all).await?.into_result()?;
    let name = |d: u32| format!("Department {d:03}");
    let departments: Vec<_> = (0..DEPARTMENTS)
        .map(|d| together::Department { name: name(d), employees: EMPLOYEES })
        .collect();
    client.bulk().insert_all(departments).await?.into_result()?;
    requests(&format!("load of {} employees", DEPARTMENTS * EMPLOYEES));
    let table: Table<together::Department> = client.table();
    let Some(mut first) = table.get(together::Department::primary().name(name(0))).await? else {
        return Err(Error::new(ErrorKind::NotFound, "the department was inserted"));
    };
    first.employees += 1;
    let mut transaction = client.transaction();
    let new = together::Employee { department: name(0), id: 999_999 };
    transaction.insert(&new)?.replace(&first)?;
    transaction.commit().await?;
    requests("a new employee with the count, exact");
    let staff: Table<together::Employee> = client.table();
    let found = staff.query(together::Employee::primary().department(name(0))).collect().await?;
    requests("all of a department");
    assert_eq!(found.len(), EMPLOYEES as usize + 1);

    println!("2. tables of their own");
    let all = everybody().map(|(department, id)| apart::Employee { id, department });
    client.bulk().insert_all(all).await?.into_result()?;
    requests("load: a partition for each, so a request for each");
    let mut transaction = client.transaction();
    transaction.insert(&apart::Employee { id: 999_999, department: name(0) })?;
    let other = apart::Department { name: name(0), employees: 1 };
    let refused = transaction.insert(&other).map(drop);
    if let Err(error) = &refused {
        println!("  both in one transaction is refused: {error}");
    }
    assert!(refused.is_err_and(|error| error.is_invalid()));

    println!("3. the department's data in each employee");
    let all = everybody().map(|(department, id)| Merged { department, id, manager: "Jo".into() });
    client.bulk().insert_all(all).await?.into_result()?;
    requests("load");
    let merged: Table<Merged> = client.table();
    let one = merged.get(Merged::primary().department(name(7)).id(700)).await?;
    requests("an employee with the manager's name");
    assert_eq!(one.map(|one| one.manager.clone()).as_deref(), Some("Jo"));
    let all = merged.query(Merged::primary().department(name(7)));
    let report = merged.bulk().update_all(all, |one| {
        one.manager = "Ann".into();
        Ok(())
    });
    assert_eq!(report.await?.done, u64::from(EMPLOYEES));
    requests("a new manager: every employee is written");
    Ok(())
}
