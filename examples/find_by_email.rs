//! Finds an employee by e-mail or last name, although the key is the number.
//!
//! A table has one order, that of its keys. An index stores a copy of the entity under another key; a
//! list stores the keys of all entities that share a value. Both are in the employee's own partition,
//! so that one transaction writes all of them or none.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    // A full copy: a lookup is one read. `unique`: no two employees of a department have equal e-mails,
    // upper and lower case alike. `unique_value.rs` makes a value unique in the whole table.
    index(ByEmail, row_key = "email_{email:lower}", unique),
    // A partial copy: only the fields that a list of names shows.
    index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
    // One row with the keys of all employees of a last name.
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    email: String,
    age: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Name {
    id: u32,
    first_name: String,
    last_name: String,
}

fn employee(id: u32, first_name: &str, last_name: &str) -> Employee {
    let email = format!("{}{id}@contoso.com", last_name.to_lowercase());
    let (first_name, last_name) = (first_name.into(), last_name.into());
    Employee { department: "Sales".into(), id, first_name, last_name, email, age: 30 }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let staff: Table<Employee> = client.table();
    staff.create().await?;
    for e in [employee(223, "Don", "Hall"), employee(7, "Jun", "Cao"), employee(8, "Ann", "Hall")] {
        staff.insert(&e).await?;
    }

    // By e-mail: one read, of the copy.
    recorder.clear();
    let by_email = || Employee::by_email().department("Sales").email("Hall223@Contoso.com");
    let don = staff.get(by_email()).await?;
    let requests = recorder.take().len();
    println!("by e-mail: {:?}, {requests} request", don.as_ref().map(|don| don.id));
    if let Some(don) = &don {
        println!("RowKey: {}, EmployeeEmail: {}", don.row_key(), don.email);
    }
    assert_eq!(don.map(|don| don.id), Some(223));
    assert_eq!(requests, 1);

    // By the first letters of the last name: one range of partial copies.
    let path = Employee::by_name().department("Sales").last_name_prefix("H");
    let query = staff.query(path).select::<Name>();
    assert_eq!(
        query.explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'name_H') and (RowKey lt 'name_I')"
    );
    let names: Vec<_> = query.collect().await?.into_iter().map(|n| n.into_inner().id).collect();
    let requests = recorder.take().len();
    println!("last names with H: {names:?}, {requests} request");
    assert_eq!(names, [8, 223]);
    assert_eq!(requests, 1);

    // By last name: one read of the list for the keys, and one more read for each employee.
    let halls = || Employee::by_last_name().department("Sales").last_name("Hall");
    let keys = staff.keys(halls()).await?;
    assert_eq!(
        keys.iter().map(Point::row_key).collect::<Vec<_>>(),
        ["empid_000223", "empid_000008"]
    );
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(staff.query(halls()).collect().await?.len(), 2);
    let requests = recorder.take().len();
    println!("by last name: {} employees, {requests} requests", keys.len());
    assert_eq!(requests, 3);

    // A change of e-mail and name moves the copies and the list entries in the employee's transaction.
    let point = || Employee::primary().department("Sales").id(223);
    staff
        .update(point(), |don| {
            don.last_name = "Cao".into();
            don.email = "don@contoso.com".into();
            Ok(())
        })
        .await?;
    assert!(staff.get(by_email()).await?.is_none());
    assert_eq!(staff.keys(halls()).await?.len(), 1);
    let caos = Employee::by_last_name().department("Sales").last_name("Cao");
    assert_eq!(staff.keys(caos).await?.len(), 2);
    println!("after a change the old e-mail finds nobody, and the lists have followed");

    // An e-mail that another employee of the department has is refused, and nothing is written.
    let twin = Employee { email: "DON@contoso.com".into(), ..employee(9, "Dan", "Hall") };
    let refused = staff.insert(&twin).await;
    if let Err(error) = &refused {
        println!("refused: {error}");
    }
    assert!(refused.is_err_and(|e| e.is_unique_violation() && e.index() == Some("ByEmail")));
    assert_eq!(staff.keys(halls()).await?.len(), 1);

    // A delete removes every row of the employee.
    staff.delete_at(point()).await?;
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
    println!("after the delete the partition has {} rows, none of employee 223", rows.len());
    assert!(rows.iter().all(|row| !row.row_key().contains("223")));
    Ok(())
}
