//! Finding an employee by e-mail or last name, where the key is the number.
//!
//! A table has one order, that of its keys. Copies under another key and lists of keys give more
//! ways in; they stand in the employee's own partition, so that every write changes all of them
//! together or none.

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    // A whole copy: one read. No two employees have the same e-mail, in whatever case.
    index(ByEmail, row_key = "email_{email:lower}", unique),
    // A small copy: what a list of names shows.
    index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
    // One row with the keys of all who are called so.
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

    // By e-mail: one read of the copy.
    recorder.clear();
    let by_email = || Employee::by_email().department("Sales").email("Hall223@Contoso.com");
    let don = staff.get(by_email()).await?;
    assert_eq!(don.map(|don| don.id), Some(223));
    assert_eq!(recorder.take().len(), 1);

    // By the first letters of the last name: one range of small copies.
    let path = Employee::by_name().department("Sales").last_name_prefix("H");
    let query = staff.query(path).select::<Name>();
    assert_eq!(
        query.explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'name_H') and (RowKey lt 'name_I')"
    );
    let names: Vec<_> = query.collect().await?.into_iter().map(|n| n.into_inner().id).collect();
    assert_eq!(names, [8, 223]);
    assert_eq!(recorder.take().len(), 1);

    // By last name: the list, and then each of its employees by key.
    let halls = || Employee::by_last_name().department("Sales").last_name("Hall");
    let keys = staff.keys(halls()).await?;
    assert_eq!(
        keys.iter().map(Point::row_key).collect::<Vec<_>>(),
        ["empid_000223", "empid_000008"]
    );
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(staff.query(halls()).collect().await?.len(), 2);
    assert_eq!(recorder.take().len(), 3);

    // A change of e-mail and name moves the copy and the entries, with the employee.
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

    // A taken e-mail is refused, and nothing is written.
    let twin = Employee { email: "DON@contoso.com".into(), ..employee(9, "Dan", "Hall") };
    let refused = staff.insert(&twin).await;
    assert!(refused.is_err_and(|e| e.is_unique_violation() && e.index() == Some("ByEmail")));
    assert_eq!(staff.keys(halls()).await?.len(), 1);

    // Deleting the employee deletes every row of it.
    staff.delete_at(point()).await?;
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
    assert!(rows.iter().all(|row| !row.row_key().contains("223")));
    Ok(())
}
