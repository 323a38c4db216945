//! Works across partitions: an index by email over all departments, a message that follows a change,
//! and an employee who moves to an archive table.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    email: String,
}

/// Counts the employees who have left a department.
#[derive(Debug, TableEntity)]
#[table(name = "Leavers", partition_key = "{department}", row_key = "count")]
struct Leavers {
    department: String,
    count: i64,
}

/// Tells a worker that an employee of a department has left.
#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "EmployeeLeft", version = 1)]
struct EmployeeLeft {
    department: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let current = client.table::<Employee>();
    let archive = client.table_named::<Employee>("Archive");
    current.create().await?;
    archive.create().await?;
    client.table::<Leavers>().create().await?;

    // The copy by email is in another partition. On Azure it is written right after the answer, and
    // `wait_for_copies` waits for it. A program that does not wait finds the employee a moment later.
    let don = Employee {
        department: "Sales".into(),
        id: 456,
        name: "Don Jones".into(),
        email: "DonJ@contoso.com".into(),
    };
    let mut stored = current.insert(&don).await?;
    stored.wait_for_copies().await?;
    let everywhere = current.query(Employee::by_email().email("donj@contoso.com"));
    let found = everywhere.collect().await?;
    assert_eq!(found.len(), 1);
    for don in &found {
        println!("found by email in any department: {} of {}", don.name, don.department);
    }

    // One transaction writes the change and the message about it: both or neither.
    stored.name = "Don Jones (left)".into();
    let mut egt = client.transaction();
    egt.replace(&stored)?.emit(&EmployeeLeft { department: don.department.clone() })?;
    egt.commit().await?;
    println!("changed the employee and sent a message in one transaction");

    // A worker handles messages, here or in a program of its own. The transaction inside `once` takes
    // effect once, however often the message is delivered.
    let worker = client.worker().on(|cx, left: EmployeeLeft| async move {
        let leavers = cx.client().table::<Leavers>();
        let mut egt = leavers.transaction();
        match leavers.get(Leavers::primary().department(&*left.department)).await? {
            Some(mut leavers) => {
                leavers.count += 1;
                egt.replace(&leavers)?;
            }
            None => {
                egt.insert(&Leavers { department: left.department, count: 1 })?;
            }
        }
        cx.once(egt).await?;
        Ok(())
    });
    let done = worker.drain().await?;
    assert_eq!((done.open, done.poisoned), (0, 0));
    let leavers = client.table::<Leavers>().get(Leavers::primary().department("Sales")).await?;
    let count = leavers.map(|leavers| leavers.count);
    println!("a worker handled {} message; leavers of Sales: {count:?}", done.applied);
    assert_eq!(count, Some(1));

    // A move to another table: for a moment the entity is in both tables, and never in neither.
    let point = || Employee::primary().department("Sales").id(456);
    let gone = || Error::new(ErrorKind::NotFound, "the employee is gone");
    let stored = current.get(point()).await?.ok_or_else(gone)?;
    current.move_to(&stored, &archive).await?.wait().await?;
    assert!(current.get(point()).await?.is_none());
    let archived = archive.get(point()).await?.map(|don| don.name.clone());
    println!("moved to the archive: {archived:?}");
    assert_eq!(archived.as_deref(), Some("Don Jones (left)"));
    worker.drain().await?;
    let by_email = || Employee::by_email().email("donj@contoso.com");
    assert!(current.query(by_email()).collect().await?.is_empty());
    assert_eq!(archive.query(by_email()).collect().await?.len(), 1);
    println!("the copy by email followed to the archive");
    Ok(())
}
