//! Tests encrypted properties that the program does not know.

use std::sync::Arc;

use entable::{backend::Memory, prelude::*};

use crate::fixture::keyring;

/// The entity as a newer program writes it.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee",
    index(ByAge, row_key = "age_{age:03}_{id:06}")
)]
struct Newer {
    department: String,
    id: u32,
    age: u8,
    #[table(encrypt, blind)]
    badge: String,
    #[table(encrypt(hide_none))]
    bonus: Option<i64>,
}

/// The entity as this program knows it.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
}

/// An entity without copies.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee"
)]
struct Alone {
    department: String,
    id: u32,
    age: u8,
}

async fn stored() -> (Client, Client) {
    let memory = Arc::new(Memory::new());
    let with_keys = Client::builder().backend(memory.clone()).keys(keyring(1)).build().unwrap();
    let without = Client::builder().backend(memory).build().unwrap();
    with_keys.create_table("Staff").await.unwrap();
    let don =
        Newer { department: "Sales".into(), id: 1, age: 34, badge: "gold".into(), bonus: None };
    with_keys.table::<Newer>().insert(&don).await.unwrap();
    (with_keys, without)
}

fn at(id: u32) -> Point<Newer> {
    Newer::primary().department("Sales").id(id)
}

#[tokio::test]
async fn a_program_with_keys_takes_it_along() {
    let (client, _) = stored().await;
    let staff = client.table::<Employee>();
    let mut don = staff.get(Employee::primary().department("Sales").id(1)).await.unwrap().unwrap();
    don.id = 2;
    don.age = 35;
    staff.replace(&don).await.unwrap();
    let newer = client.table::<Newer>();
    let found = newer.get(at(2)).await.unwrap().unwrap();
    assert_eq!((&*found.badge, found.age, found.bonus), ("gold", 35, None));
    let copies = newer.query(Newer::by_age().department("Sales").age(35)).collect().await.unwrap();
    assert_eq!((copies.len(), &*copies[0].badge, copies[0].bonus), (1, "gold", None));
    let gold = newer.query(Newer::primary().department("Sales")).filter(Newer::BADGE.eq("gold"));
    assert_eq!(gold.count().await.unwrap(), 1, "the token came along");
}

#[tokio::test]
async fn a_program_without_keys_leaves_it_where_it_is() {
    let (client, without) = stored().await;
    let alone = without.table::<Alone>();
    let point = || Alone::primary().department("Sales").id(1);
    let mut don = alone.get(point()).await.unwrap().unwrap();
    don.age = 35;
    let mut don = alone.replace(&don).await.unwrap();
    assert_eq!(client.table::<Newer>().get(at(1)).await.unwrap().unwrap().badge, "gold");

    don.id = 2;
    let error = alone.replace(&don).await.unwrap_err();
    assert!(error.is_lossy(), "{error}");
    assert!(["Badge", "Bonus"].contains(&error.property().unwrap()));
    assert_eq!(error.keys(), Some(("Sales", "empid_000001")));

    let staff = without.table::<Employee>();
    let point = || Employee::primary().department("Sales").id(1);
    let error = staff.update(point(), |it| Ok(it.age += 1)).await.unwrap_err();
    assert!(error.is_lossy(), "the copy cannot hold it");
    let error = staff.patch_at(point(), Employee::patch().age(50)).await.unwrap_err();
    assert!(error.is_lossy());
    staff.replace_any(&Employee { department: "Sales".into(), id: 1, age: 50 }).await.unwrap();
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!(row.get("Badge"), None);
}
