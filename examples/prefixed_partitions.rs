//! Keeps one index in each partition: `empid_Sales` sorts the employees of Sales by id, `email_Sales` by
//! e-mail.
//!
//! The two partitions can be on different servers, so that lookups by e-mail do not slow down lookups by id.
//! No transaction spans them: the copy by e-mail follows its entity.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "empid_{department}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "email_{department}", row_key = "{email:lower}", unique)
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    email: String,
}

fn employee(id: u32, name: &str, email: &str) -> Employee {
    Employee { department: "Sales".into(), id, name: name.into(), email: email.into() }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let staff: Table<Employee> = client.table();
    staff.create().await?;
    for one in [
        employee(223, "Jones", "jonesj@contoso.com"),
        employee(150, "Ann", "annj@contoso.com"),
        employee(101, "Alice", "Alice@contoso.com"),
    ] {
        // On Azure the copy is written after the answer; this waits for it.
        staff.insert(&one).await?.wait_for_copies().await?;
    }

    // The PartitionKey says which index a query uses.
    let by_id = Employee::primary().department("Sales");
    let by_email = Employee::by_email().department("Sales");
    let shown = [
        (
            staff.query(by_id.clone().id(223)),
            "(PartitionKey eq 'empid_Sales') and (RowKey eq '000223')",
        ),
        (
            staff.query(by_email.clone().email("jonesj@contoso.com")),
            "(PartitionKey eq 'email_Sales') and (RowKey eq 'jonesj@contoso.com')",
        ),
        (
            staff.query(by_id.id_range(100..=199)),
            "(PartitionKey eq 'empid_Sales') and (RowKey ge '000100') and (RowKey le '000199')",
        ),
        (
            staff.query(by_email.clone().email_prefix("a")),
            "(PartitionKey eq 'email_Sales') and (RowKey ge 'a') and (RowKey lt 'b')",
        ),
    ];
    for (query, filter) in shown {
        let found = query.collect().await?;
        let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        println!("{filter}\n    {names:?}");
        assert_eq!(query.explain().filter, filter);
        assert!(!names.is_empty());
    }

    // A new address moves the copy. The old one is found no more, and is free for somebody else.
    let point = Employee::primary().department("Sales").id(150);
    let change = |ann: &mut Employee| {
        ann.email = "ann@contoso.com".into();
        Ok(())
    };
    let ann = staff.update(point, change).await?;
    ann.wait_for_copies().await?;
    assert!(staff.get(by_email.clone().email("annj@contoso.com")).await?.is_none());
    let taken = staff.insert(&employee(300, "Anna", "ANN@contoso.com")).await;
    assert!(taken.is_err_and(|error| error.is_unique_violation()));
    staff.insert(&employee(300, "Anna", "annj@contoso.com")).await?.wait_for_copies().await?;

    // An entity that was read by e-mail is changed by its own keys.
    let found = staff.get(by_email.email("annj@contoso.com")).await?;
    let point = found
        .map(|anna| anna.point())
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "the copy of Anna is not there"))?;
    println!("Anna is stored in {} as {}", point.partition_key(), point.row_key());
    assert_eq!((point.partition_key(), point.row_key()), ("empid_Sales", "000300"));
    Ok(())
}
