//! Merges and replaces: what each verb sends, what it keeps of the stored row, and what it needs to exist.
//!
//! Another program stores a property here that this struct does not declare. That is common while two
//! versions of a program run side by side.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: i32,
    phone: Option<String>,
}

fn don() -> Employee {
    let phone = Some("555".to_owned());
    Employee { department: "Sales".into(), id: 223, name: "Don".into(), age: 34, phone }
}

/// Stores Don with the property `Shoes`, which only another program knows.
async fn with_shoes(client: &Client) -> Result<(), Error> {
    client.table::<Employee>().insert_or_replace(&don()).await?;
    let staff = client.dynamic("Staff");
    let keys = DynamicEntity::new("Sales", "empid_000223");
    staff.insert_or_merge(&keys.with("Shoes", 43)).await.map(drop)
}

/// Returns the names of the stored properties.
async fn stored(client: &Client) -> Result<Vec<String>, Error> {
    let row = client.dynamic("Staff").get("Sales", "empid_000223").await?;
    let bag = row.map(|row| row.row().to_bag()).transpose()?.unwrap_or_default();
    let names = bag.iter().map(|(name, _)| name.to_owned());
    Ok(names.filter(|name| name != "EntityType").collect())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let staff: Table<Employee> = client.table();
    staff.create().await?;
    let point = || Employee::primary().department("Sales").id(223);

    // A replacement writes the whole entity. It keeps the property that the struct does not declare.
    with_shoes(&client).await?;
    let mut one = staff.get(point()).await?.ok_or_else(missing)?;
    one.age = 35;
    staff.replace(&one).await?;
    println!("after replace: {:?}", stored(&client).await?);
    assert!(stored(&client).await?.contains(&"Shoes".to_owned()));

    // `replace_any` and `insert_or_replace` write the struct alone, without reading what is stored.
    staff.replace_any(&don()).await?;
    println!("after replace_any: {:?}", stored(&client).await?);
    assert!(!stored(&client).await?.contains(&"Shoes".to_owned()));

    // A patch is a merge: its request has the changed property alone, and the others stay.
    with_shoes(&client).await?;
    recorder.clear();
    staff.patch_at(point(), Employee::patch().age(36)).await?;
    let requests = recorder.take();
    println!("patch_at sends {requests:?}");
    assert!(matches!(requests.as_slice(), [Request::Apply { .. }]));
    let kept = stored(&client).await?;
    assert!(["Name", "Phone", "Shoes"].iter().all(|name| kept.contains(&(*name).to_owned())));

    // A merge cannot remove a property. A patch that removes one replaces the entity under its ETag.
    let one = staff.get(point()).await?.ok_or_else(missing)?;
    staff.patch(&one, Employee::patch().remove_phone()).await?;
    println!("after remove_phone: {:?}", stored(&client).await?);
    let left = stored(&client).await?;
    assert!(!left.contains(&"Phone".to_owned()) && left.contains(&"Shoes".to_owned()));

    // Both need an entity that exists. The two verbs that insert if there is none:
    let new = Employee { id: 224, phone: None, ..don() };
    assert!(staff.replace_any(&new).await.is_err_and(|error| error.is_not_found()));
    let at_new = Employee::primary().department("Sales").id(224);
    let patched = staff.patch_at(at_new, Employee::patch().age(50)).await;
    assert!(patched.is_err_and(|error| error.is_not_found()));
    staff.insert_or_merge(&new).await?;
    staff.insert_or_replace(&new).await?;
    println!("the upserts created employee {}", new.id);
    Ok(())
}

fn missing() -> Error {
    Error::new(ErrorKind::NotFound, "Don is not stored")
}
