//! Keeps the manager's details in the department too, so that showing a department is one read.
//!
//! To denormalise is to store a value twice because it is read together with something else. Both rows
//! are in one partition here, so that one entity group transaction changes both or neither.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

/// The fields that both rows have. In the department their names begin with `Manager`.
#[derive(Debug, Clone, PartialEq, Properties)]
struct Person {
    name: String,
    email: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    manager_id: u32,
    #[table(flatten)]
    manager: Person,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten(prefix = ""))]
    person: Person,
}

/// Gives an employee new details, and the department if the employee manages it.
async fn change(client: &Client, name: &str, id: u32, person: Person) -> Result<(), Error> {
    let (staff, departments): (Table<Employee>, Table<Department>) =
        (client.table(), client.table());
    let employee = staff.get(Employee::primary().department(name).id(id)).await?;
    let department = departments.get(Department::primary().name(name)).await?;
    let (Some(mut employee), Some(mut department)) = (employee, department) else {
        return Err(Error::new(ErrorKind::NotFound, "no such employee or department"));
    };
    employee.person = person.clone();
    let mut transaction = client.transaction();
    transaction.replace(&employee)?;
    if department.manager_id == id {
        department.manager = person;
        transaction.replace(&department)?;
    }
    // Both rows have the ETag that was read: if another writer was first, nothing is written.
    transaction.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let faults = FaultInjector::around(Memory::new());
    let recorder = Recorder::around(faults.clone());
    let client = Client::builder().backend(recorder.clone()).build()?;
    client.create_table("Staff").await?;
    let jo = Person { name: "Jo".into(), email: "jo@contoso.com".into() };
    let mut transaction = client.transaction();
    transaction
        .insert(&Employee { department: "Sales".into(), id: 7, person: jo.clone() })?
        .insert(&Department { name: "Sales".into(), manager_id: 7, manager: jo.clone() })?;
    transaction.commit().await?;

    let departments: Table<Department> = client.table();
    let staff: Table<Employee> = client.table();
    let sales = || departments.get(Department::primary().name("Sales"));

    // Normalised, a page needs the department, and then its manager.
    recorder.clear();
    if let Some(sales) = sales().await? {
        staff.get(Employee::primary().department("Sales").id(sales.manager_id)).await?;
    }
    let normalised = recorder.take().len();
    // Denormalised, the department is enough.
    let shown = sales().await?;
    let denormalised = recorder.take().len();
    println!("normalised: {normalised} requests, denormalised: {denormalised}");
    println!("the manager of Sales: {:?}", shown.as_ref().map(|sales| &sales.manager.name));
    assert_eq!((normalised, denormalised), (2, 1));

    // A new address reaches both rows in one transaction.
    let moved = Person { email: "jo@fabrikam.com".into(), ..jo.clone() };
    change(&client, "Sales", 7, moved.clone()).await?;
    let writes = recorder.take().iter().filter(|request| request.is_apply()).count();
    println!("a new address: {writes} transaction");
    assert_eq!(writes, 1);
    assert_eq!(sales().await?.map(|sales| sales.manager.clone()), Some(moved.clone()));

    // If the store fails in between, no row has changed.
    let lost = Error::new(ErrorKind::Backend, "the disk is gone");
    faults.inject(RequestKind::Apply, 0, InjectedFault::Before(lost));
    let failed = change(&client, "Sales", 7, jo).await;
    assert!(failed.is_err_and(|error| error.is_backend()));
    let (department, employee) =
        (sales().await?, staff.get(Employee::primary().department("Sales").id(7)).await?);
    assert_eq!(department.map(|department| department.manager.clone()), Some(moved.clone()));
    assert_eq!(employee.map(|employee| employee.person.clone()), Some(moved));
    println!("after a failure both rows still agree");
    Ok(())
}
