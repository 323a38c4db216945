//! Chooses by a function which properties are encrypted, and reads encrypted rows of several types.
//!
//! `#[table(encrypt)]` is the usual way: the declaration decides. A resolver decides for each row, by its
//! keys, and also for rows without a declared type.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    EdmType,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    note: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "review_{id:06}")]
struct Review {
    department: String,
    id: u32,
    note: String,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
enum StaffRow {
    Employee(Employee),
    Review(Review),
}

/// Returns the stored type of a property of a row, as a client without keys sees it.
async fn stored_type(store: &Recorder, keys: (&str, &str), name: &str) -> Result<EdmType, Error> {
    let bare = Client::builder().backend(store.clone()).build()?;
    let row = bare.dynamic("Staff").get(keys.0, keys.1).await?;
    let value = row.as_ref().map(|row| row.row().get(name)).transpose()?.flatten();
    value.map(|value| value.edm_type()).ok_or_else(|| Error::new(ErrorKind::NotFound, "no value"))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let store = Recorder::around(Memory::new());
    let keys = Keyring::from_bytes([7; 32]);
    // Notes are encrypted, except in the department that publishes its reviews.
    let client = Client::builder()
        .backend(store.clone())
        .keys(keys.clone())
        .encrypt_if(|partition_key, _row_key, property| {
            property == "Note" && partition_key != "Public"
        })
        .build()?;
    client.create_table("Staff").await?;
    let staff = client.set::<StaffRow>("Staff");
    for department in ["Sales", "Public"] {
        let (department, note) = (department.to_owned(), "late again".to_owned());
        let employee = Employee {
            department: department.clone(),
            id: 1,
            name: "Don".into(),
            note: note.clone(),
        };
        staff.insert(&employee.into()).await?;
        staff.insert(&Review { department, id: 1, note }.into()).await?;
    }
    // A row without a declared type passes the resolver too.
    let memo = DynamicEntity::new("Sales", "memo").with("Note", "secret").with("Pages", 2);
    client.dynamic("Staff").insert(&memo).await?;

    for (partition_key, row_key, expected) in [
        ("Sales", "empid_000001", EdmType::Binary),
        ("Sales", "review_000001", EdmType::Binary),
        ("Sales", "memo", EdmType::Binary),
        ("Public", "empid_000001", EdmType::String),
        ("Public", "review_000001", EdmType::String),
    ] {
        let found = stored_type(&store, (partition_key, row_key), "Note").await?;
        println!("{partition_key}/{row_key}: `Note` is stored as {found:?}");
        assert_eq!(found, expected);
    }

    // A reader needs the keys alone, whatever the resolver chose: each value says that it is encrypted.
    let reader = Client::builder().backend(store).keys(keys).build()?;
    let rows = reader.set::<StaffRow>("Staff").query(Keys::partition("Sales").prefix("empid_"));
    let rows = rows.collect().await?;
    println!("decrypted: {rows:?}");
    let is_read =
        |row: &StaffRow| matches!(row, StaffRow::Employee(one) if one.note == "late again");
    assert!(rows.len() == 1 && rows.iter().all(|row| is_read(row)));
    let memo = reader.dynamic("Staff").get("Sales", "memo").await?;
    assert_eq!(memo.as_ref().map(|memo| memo.str("Note")).transpose()?, Some("secret"));
    Ok(())
}
