//! Tests that a program which does not know a property of a row keeps it.

use entable::{
    Client,
    backend::{Memory, layer::RetryPolicy},
    prelude::*,
};

mod newer {
    use entable::prelude::*;

    /// The entity as a newer program writes it.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        index(ByAge, row_key = "age_{age:03}_{id:06}"),
        index(ByMail, row_key = "mail_{email}", only(age)),
        index(Everywhere, partition_key = "all", row_key = "at_{department}_{id:06}")
    )]
    pub struct Employee {
        pub department: String,
        pub id: u32,
        pub age: u8,
        pub email: String,
        pub nickname: Option<String>,
        pub badge: Option<String>,
    }
}

/// The entity as this program knows it.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}"),
    index(ByMail, row_key = "mail_{email}", only(age)),
    index(Everywhere, partition_key = "all", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    email: String,
    nickname: Option<String>,
}

/// A program that writes the struct alone.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee",
    drop_unknown
)]
struct Dropping {
    department: String,
    id: u32,
    age: u8,
}

/// The next version of the struct: it has no `Email` any more.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Plain",
    version = 2,
    upgrade_from(PlainV1)
)]
struct Plain {
    department: String,
    id: u32,
    years: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Plain"
)]
struct PlainV1 {
    department: String,
    id: u32,
    age: i32,
}

impl From<PlainV1> for Plain {
    fn from(old: PlainV1) -> Self {
        Self { department: old.department, id: old.id, years: old.age }
    }
}

async fn stored() -> (Client, Table<Employee>, Table<newer::Employee>) {
    let client = Client::memory();
    let newer = client.table::<newer::Employee>();
    newer.create().await.unwrap();
    let don = newer::Employee {
        department: "Sales".into(),
        id: 1,
        age: 34,
        email: "donh@contoso.com".into(),
        nickname: Some("Don".into()),
        badge: Some("gold".into()),
    };
    newer.insert(&don).await.unwrap().wait_for_copies().await.unwrap();
    (client.clone(), client.table(), newer)
}

fn at() -> Point<Employee> {
    Employee::primary().department("Sales").id(1)
}

/// The badge in the row, in the full copies, and in the partial one.
async fn badges(client: &Client, age: u8) -> [Option<String>; 4] {
    client.wait_for_copies().await;
    let age = format!("age_{age:03}_000001");
    let mut badges = [const { None }; 4];
    let rows = [
        ("Sales", "empid_000001"),
        ("Sales", &*age),
        ("all", "at_Sales_000001"),
        ("Sales", "mail_donh@contoso.com"),
    ];
    for (badge, (partition_key, row_key)) in badges.iter_mut().zip(rows) {
        let row = client.dynamic("Staff").get(partition_key, row_key).await.unwrap().unwrap();
        *badge = row.get("Badge").and_then(Value::as_str).map(str::to_owned);
    }
    badges
}

fn gold() -> [Option<String>; 4] {
    let gold = Some("gold".to_owned());
    [gold.clone(), gold.clone(), gold, None]
}

#[tokio::test]
async fn guarded_writes_keep_it_in_the_row_and_in_full_copies() {
    let (client, staff, newer) = stored().await;
    let mut don = staff.get(at()).await.unwrap().unwrap();
    don.age = 35;
    don.nickname = None;
    let mut don = staff.replace(&don).await.unwrap();
    assert_eq!(badges(&client, 35).await, gold());
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!(row.get("Nickname"), None, "what the struct knows and does not have goes");

    // The value that a write returned can be written again.
    don.age = 36;
    staff.replace(&don).await.unwrap();
    assert_eq!(badges(&client, 36).await, gold());
    staff.update(at(), |it| Ok(it.age += 1)).await.unwrap();
    assert_eq!(badges(&client, 37).await, gold());
    let don = staff.get(at()).await.unwrap().unwrap();
    staff.patch(&don, Employee::patch().age(38)).await.unwrap();
    assert_eq!(badges(&client, 38).await, gold());
    staff.patch_at(at(), Employee::patch().age(39).remove_nickname()).await.unwrap();
    assert_eq!(badges(&client, 39).await, gold());
    let all: Query<_, _> = staff.query(Employee::primary().department("Sales"));
    let report = client.bulk().update_all(all, |it| Ok(it.age += 1)).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(badges(&client, 40).await, gold());

    let through_copy = Employee::everywhere().department("Sales").id(1);
    let mut don = staff.get(through_copy).await.unwrap().unwrap();
    don.age = 41;
    staff.replace(&don).await.unwrap();
    assert_eq!(badges(&client, 41).await, gold());
    client.wait_for_copies().await;
    assert!(staff.check().await.unwrap().is_clean());
    assert!(newer.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_changed_key_takes_it_along() {
    let (client, staff, _) = stored().await;
    let mut don = staff.get(at()).await.unwrap().unwrap();
    don.id = 2;
    staff.replace(&don).await.unwrap();
    let row = client.dynamic("Staff").get("Sales", "empid_000002").await.unwrap().unwrap();
    assert_eq!(row.str("Badge").unwrap(), "gold");
}

#[tokio::test]
async fn writes_of_the_struct_alone_drop_it() {
    let (client, staff, newer) = stored().await;
    let don = staff.get(at()).await.unwrap().unwrap().into_inner();
    staff.replace_any(&don).await.unwrap();
    assert_eq!(badges(&client, 34).await, [const { None }; 4]);
    assert!(staff.check().await.unwrap().is_clean());

    let mut gold = newer.get(newer::Employee::primary().department("Sales").id(1)).await.unwrap();
    let gold = gold.as_mut().unwrap();
    gold.badge = Some("gold".into());
    newer.replace(gold).await.unwrap().wait_for_copies().await.unwrap();
    staff.insert_or_replace(&don).await.unwrap();
    assert_eq!(badges(&client, 34).await, [const { None }; 4]);
    staff.insert_or_merge(&don).await.unwrap();
}

#[tokio::test]
async fn a_struct_can_say_that_it_drops_what_it_does_not_know() {
    let (client, _, _) = stored().await;
    let dropping = client.table::<Dropping>();
    let at = Dropping::primary().department("Sales").id(1);
    let don = dropping.get(at).await.unwrap().unwrap();
    dropping.replace(&don).await.unwrap();
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!(row.properties().len(), 2, "the age and the type");
}

#[tokio::test]
async fn what_an_older_version_declared_is_not_unknown() {
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    let old = DynamicEntity::new("Sales", "empid_000001")
        .with("EntityType", "Plain")
        .with("Age", 34)
        .with("Badge", "gold");
    client.dynamic("Staff").insert(&old).await.unwrap();
    let plain = client.table::<Plain>();
    let at = || Plain::primary().department("Sales").id(1);
    let don = plain.get(at()).await.unwrap().unwrap();
    plain.replace(&don).await.unwrap();
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!((row.get("Age"), row.str("Badge").unwrap()), (None, "gold"));
    assert_eq!(row.str("EntityType").unwrap(), "Plain.v2");

    client.dynamic("Staff").insert_or_replace(&old).await.unwrap();
    plain.patch_at(at(), Plain::patch().years(40)).await.unwrap();
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!((row.get("Age"), row.str("Badge").unwrap()), (None, "gold"));
}

mod odd_names {
    use entable::prelude::*;

    /// Fields whose names the library uses in other rows, and bytes that begin as an encrypted value.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Visits", partition_key = "{site}", row_key = "{id:03}", entity_type = "Visit")]
    pub struct Newer {
        pub site: String,
        pub id: u32,
        pub count: i32,
        pub src: String,
        pub entable_badge: String,
        pub picture: Vec<u8>,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Visits", partition_key = "{site}", row_key = "{id:03}", entity_type = "Visit")]
    pub struct Older {
        pub site: String,
        pub id: u32,
        pub count: i32,
    }
}

#[tokio::test]
async fn fields_with_names_of_the_library_and_bytes_like_ciphertext_are_kept() {
    use odd_names::{Newer, Older};
    let client = Client::memory();
    let newer = client.table::<Newer>();
    newer.create().await.unwrap();
    let visit = Newer {
        site: "a".into(),
        id: 1,
        count: 1,
        src: "web".into(),
        entable_badge: "gold".into(),
        picture: vec![0xae, 0x7e, 0x01],
    };
    newer.insert(&visit).await.unwrap();
    let older = client.table::<Older>();
    older.update(Older::primary().site("a").id(1), |it| Ok(it.count = 2)).await.unwrap();
    // A changed key: a value that were encrypted could not follow.
    older.update(Older::primary().site("a").id(1), |it| Ok(it.id = 2)).await.unwrap();
    let found = newer.get(Newer::primary().site("a").id(2)).await.unwrap().unwrap();
    assert_eq!(found.into_inner(), Newer { id: 2, count: 2, ..visit });
}

#[tokio::test]
async fn the_id_of_a_request_is_no_unknown_property() {
    let policy = RetryPolicy::new().operation_ids(true);
    let client = Client::builder().backend(Memory::new()).retry(policy).build().unwrap();
    let staff = client.table::<newer::Employee>();
    staff.create().await.unwrap();
    let don = newer::Employee {
        department: "Sales".into(),
        id: 1,
        age: 30,
        email: "don@contoso.com".into(),
        nickname: None,
        badge: None,
    };
    staff.insert(&don).await.unwrap().wait_for_copies().await.unwrap();
    let report = staff.check().await.unwrap();
    assert!(report.is_clean(), "each copy has the id of its own request: {:?}", report.findings);
    let at = newer::Employee::primary().department("Sales").id(1);
    staff.update(at.clone(), |it| Ok(it.age = 31)).await.unwrap().wait_for_copies().await.unwrap();
    assert!(staff.check().await.unwrap().is_clean());
    let etag = staff.get(at.clone()).await.unwrap().unwrap().etag().clone();
    let same = staff.update(at, |_| Ok(())).await.unwrap();
    assert_eq!(same.etag(), etag, "nothing changed, so nothing is written");
}
