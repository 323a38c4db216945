// The employees of the examples in the documentation of methods: a hidden line of each includes this file.
#[allow(unused_imports)]
use entable::{backend::Memory, prelude::*, *};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    age: i32,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    email: String,
}

#[allow(dead_code)]
fn employee(id: u32, last_name: &str) -> Employee {
    let email = format!("{}{id}@contoso.com", last_name.to_lowercase());
    Employee { department: "Sales".into(), id, last_name: last_name.into(), email, age: 30 }
}

/// Returns the keys of an employee in Sales.
#[allow(dead_code)]
fn at(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

/// Returns the access path of all employees in Sales.
#[allow(dead_code)]
fn sales() -> Partition<Employee> {
    Employee::primary().department("Sales").into()
}

/// Returns a table in memory with the employees 7 Cao, 223 Hall and 224 Jones.
#[allow(dead_code)]
async fn staff() -> Result<Table<Employee>, Error> {
    let staff: Table<Employee> = Client::memory().table();
    staff.create().await?;
    for (id, last_name) in [(7, "Cao"), (223, "Hall"), (224, "Jones")] {
        staff.insert(&employee(id, last_name)).await?;
    }
    Ok(staff)
}
