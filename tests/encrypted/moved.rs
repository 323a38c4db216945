//! Tests moves: encrypted properties arrive encrypted for their new keys, sealed entities with a
//! new seal.

use entable::{
    EdmType,
    backend::{Memory, ReadRequest},
    prelude::*,
};

use time::{Duration, OffsetDateTime, macros::datetime};

use crate::fixture::keyring;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{clinic}",
    row_key = "patient_{id:04}",
    index(ByName, row_key = "name_{name}_{id:04}"),
    seal
)]
struct Patient {
    clinic: String,
    id: u32,
    name: String,
    #[table(encrypt)]
    diagnosis: String,
}

#[tokio::test]
async fn an_encrypted_entity_moves_and_opens_where_it_arrived() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    let current = client.table::<Patient>();
    let archive: Table<Patient> = client.table_named("Archive");
    for table in [&current, &archive] {
        table.create().await.unwrap();
    }
    let one = Patient {
        clinic: "north".into(),
        id: 7,
        name: "Ada".into(),
        diagnosis: "influenza".into(),
    };
    let mut stored = current.insert(&one).await.unwrap();
    stored.clinic = "south".into();
    current.move_to(&stored, &archive).await.unwrap().wait().await.unwrap();

    let left = current.query(Patient::scan()).collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    let by_name = Patient::by_name().clinic("south").name("Ada").id(7);
    let found = archive.get(Patient::primary().clinic("south").id(7)).await.unwrap().unwrap();
    assert_eq!((&*found.diagnosis, &*found.clinic), ("influenza", "south"));
    assert_eq!(&*archive.get(by_name).await.unwrap().unwrap().diagnosis, "influenza");
    for row_key in ["patient_0007", "name_Ada_0007"] {
        let read = ReadRequest { table: "Archive", partition_key: "south", row_key, select: None };
        let row = client.backend().read(read).await.unwrap().unwrap();
        let kind = row.get("Diagnosis").unwrap().map(|value| value.edm_type());
        assert_eq!(kind, Some(EdmType::Binary), "{row_key}");
    }
    assert!(archive.check().await.unwrap().is_clean());
}

/// Its keys do not hold the time that names its table, and its seal covers that time.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Notes{at:%Y%m%d}", partition_key = "{user}", row_key = "note_{id:02}", seal)]
struct Note {
    user: String,
    id: u32,
    at: OffsetDateTime,
    #[table(encrypt)]
    text: String,
}

const NOON: OffsetDateTime = datetime!(2026-07-31 12:00 UTC);

#[tokio::test]
async fn a_sealed_entity_moves_to_the_table_of_a_time_that_its_keys_do_not_hold() {
    let client = Client::builder().backend(Memory::new()).keys(keyring(1)).build().unwrap();
    let notes = client.table::<Note>();
    let note = Note { user: "don".into(), id: 1, at: NOON, text: "secret".into() };
    let mut stored = notes.insert(&note).await.unwrap();
    stored.at = NOON + Duration::DAY;
    let error = notes.replace(&stored).await.unwrap_err();
    assert!(error.message().contains("with `move_to`"), "{error}");
    notes.move_to(&stored, &notes).await.unwrap().wait().await.unwrap();
    let at = |at| Note::primary().at(at).user("don").id(1);
    assert!(notes.get(at(NOON)).await.unwrap().is_none());
    let found = notes.get(at(NOON + Duration::DAY)).await.unwrap().unwrap();
    assert_eq!(*found, Note { at: NOON + Duration::DAY, ..note });
    let reader = Client::builder().backend(client.backend().clone()).build().unwrap();
    let row = reader.dynamic("Notes20260801").get("don", "note_01").await.unwrap().unwrap();
    assert!(!row.properties().iter().any(|(name, _)| name.starts_with("EntableMovingTo")));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Users",
    partition_key = "u_{email:lower}",
    row_key = "user",
    index(ByBadge, partition_key = "b_{badge}", row_key = "user", unique)
)]
struct User {
    email: String,
    badge: i32,
    age: i32,
}

/// Follows every message about a changed PartitionKey: what it says to do works.
#[tokio::test]
async fn what_the_messages_about_moves_say_to_do_works() {
    let client = Client::memory();
    let users = client.table::<User>();
    users.create().await.unwrap();
    let user = User { email: "Old@b".into(), badge: 1, age: 30 };
    let mut stored = users.insert(&user).await.unwrap();
    (stored.email, stored.age) = ("New@b".into(), 31);
    let error = users.replace(&stored).await.unwrap_err();
    assert!(error.message().contains("use `move_to`"), "{error}");
    let error = users.move_to(&stored, &users).await.map(drop).unwrap_err();
    let text = "write other changes with `replace` first, then change the keys and move it";
    assert!(error.message().contains(text), "{error}");
    stored.email = "Old@b".into();
    let mut stored = users.replace(&stored).await.unwrap();
    stored.email = "New@b".into();
    users.move_to(&stored, &users).await.unwrap().wait().await.unwrap();
    let found = users.get(User::primary().email("new@B")).await.unwrap().unwrap();
    assert_eq!(*found, User { email: "New@b".into(), badge: 1, age: 31 });
    assert!(users.get(User::primary().email("old@b")).await.unwrap().is_none());
    let by_badge = users.get(User::by_badge().badge(1)).await.unwrap().unwrap();
    assert_eq!(*by_badge, *found);
    // Letters of another case are the same key: no move, and `replace` writes them.
    let mut found = found;
    found.email = "NEW@b".into();
    let error = users.move_to(&found, &users).await.map(drop).unwrap_err();
    assert!(error.message().contains("the entity is already at its target"), "{error}");
    let mut found = users.replace(&found).await.unwrap();
    // Through an index, an entity is read once more.
    let copy = users.get(User::by_badge().badge(1)).await.unwrap().unwrap();
    let mut changed = copy.clone();
    changed.email = "third@b".into();
    let error = users.move_to(&changed, &users).await.map(drop).unwrap_err();
    assert!(error.message().contains("read it with `get(stored.point())`"), "{error}");
    found = users.get(copy.point()).await.unwrap().unwrap_or(found);
    found.email = "third@b".into();
    users.move_to(&found, &users).await.unwrap().wait().await.unwrap();
    assert_eq!(users.get(User::by_badge().badge(1)).await.unwrap().unwrap().email, "third@b");
    assert!(users.check().await.unwrap().is_clean());
}

mod before {
    use entable::prelude::*;

    /// The user before its email had another name.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Users",
        entity_type = "Renamed",
        partition_key = "r_{mail:lower}",
        row_key = "user"
    )]
    pub(super) struct Renamed {
        pub(super) mail: String,
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Users",
    entity_type = "Renamed",
    version = 2,
    upgrade_from(before::Renamed),
    partition_key = "r_{email:lower}",
    row_key = "user"
)]
struct Renamed {
    email: String,
}

impl From<before::Renamed> for Renamed {
    fn from(old: before::Renamed) -> Self {
        Self { email: old.mail }
    }
}

#[tokio::test]
async fn an_entity_of_an_older_version_is_written_anew_before_it_moves() {
    let client = Client::memory();
    client.create_table("Users").await.unwrap();
    client.table().insert(&before::Renamed { mail: "old@b".into() }).await.unwrap();
    let users = client.table::<Renamed>();
    let mut stored = users.get(Renamed::primary().email("old@b")).await.unwrap().unwrap();
    stored.email = "new@b".into();
    let error = users.move_to(&stored, &users).await.map(drop).unwrap_err();
    assert!(error.message().contains("write it unchanged with `replace`"), "{error}");
    stored.email = "old@b".into();
    let mut stored = users.replace(&stored).await.unwrap();
    stored.email = "new@b".into();
    users.move_to(&stored, &users).await.unwrap().wait().await.unwrap();
    let found = users.get(Renamed::primary().email("new@b")).await.unwrap().unwrap();
    assert_eq!(found.email, "new@b");
}
