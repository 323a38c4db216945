//! Keeps a manager's name in the department's row although the two are in different partitions.
//!
//! No transaction spans two partitions. The change of the employee's row and a message about it are one
//! transaction; a worker carries the message out, and `cx.once` gives its effect exactly once. The department
//! shows the old name for a moment. `denormalised_manager` shows the other way: both rows in one partition.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use entable::{Context, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "emp_{id:06}", row_key = "employee")]
struct Employee {
    id: u32,
    name: String,
    manages: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "dep_{name}", row_key = "department")]
struct Department {
    name: String,
    manager_id: u32,
    manager_name: String,
    /// How often the name was written here.
    changes: i32,
}

/// Tells the worker that a department shows the name of an employee who was renamed.
#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "ManagerRenamed", version = 1)]
struct ManagerRenamed {
    department: String,
    manager_id: u32,
}

/// Changes the employee's name and sends the message, both or neither.
async fn rename(staff: &Table<Employee>, id: u32, name: &str) -> Result<(), Error> {
    let found = staff.get(Employee::primary().id(id)).await?;
    let mut employee = found.ok_or_else(|| Error::new(ErrorKind::NotFound, "no employee"))?;
    employee.name = name.to_owned();
    let mut egt = staff.transaction();
    egt.replace(&employee)?;
    if let Some(department) = employee.manages.clone() {
        egt.emit(&ManagerRenamed { department, manager_id: id })?;
    }
    egt.commit().await.map(drop)
}

/// Writes the manager's present name into the department.
// The message holds no name: two renames that arrive in the wrong order would leave the older one.
async fn write_name(cx: Context, renamed: ManagerRenamed) -> Result<(), BoxError> {
    let (staff, departments) = (cx.client().table::<Employee>(), cx.client().table::<Department>());
    // The department first: if its row is still the same when it is written, no other worker wrote a name
    // after the manager's was read here.
    let department = departments.get(Department::primary().name(&*renamed.department)).await?;
    let manager = staff.get(Employee::primary().id(renamed.manager_id)).await?;
    let (Some(manager), Some(mut department)) = (manager, department) else { return Ok(()) };
    if department.manager_id == manager.id {
        department.manager_name.clone_from(&manager.name);
        department.changes += 1;
        let mut egt = departments.transaction();
        egt.replace(&department)?;
        // Refused if this message had its effect before, and if the department was changed meanwhile.
        cx.once(egt).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let client = Client::memory();
    let (staff, departments) = (client.table::<Employee>(), client.table::<Department>());
    staff.create().await?;
    let manages = Some("Sales".to_owned());
    staff.insert(&Employee { id: 1, name: "Don".into(), manages }).await?;
    let (name, manager_name) = ("Sales".to_owned(), "Don".to_owned());
    departments.insert(&Department { name, manager_id: 1, manager_name, changes: 0 }).await?;

    // The first delivery fails after its effect, as if the process had died there.
    let deliveries = Arc::new(AtomicU32::new(0));
    let counted = deliveries.clone();
    let worker = client.worker().on(move |cx, renamed: ManagerRenamed| {
        let delivery = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            write_name(cx, renamed).await?;
            if delivery == 0 { Err("the process died here".into()) } else { Ok(()) }
        }
    });

    rename(&staff, 1, "Donna").await?;
    let shown = departments.get(Department::primary().name("Sales")).await?;
    println!("before the worker: {:?}", shown.map(|sales| sales.manager_name.clone()));
    let done = worker.drain().await?;
    assert_eq!((done.open, done.poisoned), (0, 0));
    let shown = departments.get(Department::primary().name("Sales")).await?.ok_or("no Sales")?;
    println!(
        "after {} deliveries: {}, written {} time",
        deliveries.load(Ordering::SeqCst),
        shown.manager_name,
        shown.changes
    );
    assert_eq!((shown.manager_name.as_str(), shown.changes), ("Donna", 1));
    assert_eq!(deliveries.load(Ordering::SeqCst), 2);
    Ok(())
}
