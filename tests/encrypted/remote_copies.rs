//! Tests remote copies: writers and workers seal each for its own keys.

use entable::{
    EdmType, KeyScope, Keyring, OutboxOptions, Row, Value,
    backend::{Memory, ReadRequest, layer::Recorder},
    prelude::*,
};

use crate::fixture::{key, keyring, root};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{department}",
    row_key = "e_{id:04}",
    index(BySsn, partition_key = "ssn_{ssn:hmac}", row_key = "at_{department}_{id:04}"),
    index(
        ByCity,
        table = "Cities",
        partition_key = "city_{city}",
        row_key = "{department}_{id:04}"
    )
)]
struct Person {
    department: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt(hide_none))]
    note: Option<String>,
}

fn person(id: u32) -> Person {
    Person {
        department: "Sales".into(),
        id,
        city: "Oslo".into(),
        ssn: format!("123-45-{id:04}"),
        note: None,
    }
}

async fn open(recorder: &Recorder, keys: Keyring) -> Client {
    let client = Client::builder().backend(recorder.clone()).keys(keys).build().unwrap();
    client.create_table_if_not_exists("People").await.unwrap();
    client.create_table_if_not_exists("Cities").await.unwrap();
    client
}

async fn stored(client: &Client, table: &str, partition_key: &str, row_key: &str) -> Option<Row> {
    let read = ReadRequest { table, partition_key, row_key, select: None };
    client.backend().read(read).await.unwrap()
}

fn by_ssn(ssn: &str) -> Partition<Person> {
    Person::by_ssn().ssn(ssn).into()
}

#[tokio::test]
async fn copies_elsewhere_are_sealed_and_found_by_their_tokens() {
    let recorder = Recorder::around(Memory::new());
    let client = open(&recorder, keyring(1)).await;
    let people = client.table::<Person>();
    for id in 1..4 {
        people.insert(&person(id)).await.unwrap();
    }
    client.wait_for_copies().await;
    let found = people.query(by_ssn("123-45-0002")).collect().await.unwrap();
    assert_eq!((found.len(), &*found[0]), (1, &person(2)));
    let oslo = people.query(Person::by_city().city("Oslo")).collect().await.unwrap();
    assert_eq!(oslo.len(), 3);
    let copy = stored(&client, "Cities", "city_Oslo", "Sales_0001").await.unwrap();
    for name in ["Ssn", "Note"] {
        let value = copy.get(name).unwrap().map(|value| value.edm_type());
        assert_eq!(value, Some(EdmType::Binary), "{name}");
    }
    let printed = format!("{:?}", recorder.requests());
    assert!(!printed.contains("123-45"), "{printed}");

    // A changed value moves the copy; the old one goes.
    let mut two = people.get(Person::primary().department("Sales").id(2)).await.unwrap().unwrap();
    two.ssn = "new".into();
    people.replace(&two).await.unwrap();
    client.wait_for_copies().await;
    assert!(people.query(by_ssn("123-45-0002")).collect().await.unwrap().is_empty());
    assert_eq!(people.query(by_ssn("new")).collect().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_worker_with_keys_finishes_what_a_writer_left() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder()
        .backend(recorder.clone())
        .keys(keyring(1))
        .outbox(OutboxOptions::default().background(0))
        .build()
        .unwrap();
    open(&recorder, keyring(1)).await;
    let people = client.table::<Person>();
    people.insert(&person(1)).await.unwrap();
    let patch = Person::patch().note("changed");
    people.patch_at(Person::primary().department("Sales").id(1), patch).await.unwrap();
    assert!(people.query(by_ssn("123-45-0001")).collect().await.unwrap().is_empty());
    // A worker without keys leaves the work to one that has them.
    let keyless = Client::builder().backend(recorder.clone()).build().unwrap();
    keyless.worker().with::<Person>().drain().await.ok();
    assert!(people.query(by_ssn("123-45-0001")).collect().await.unwrap().is_empty());
    client.worker().drain().await.unwrap();
    let found = people.query(by_ssn("123-45-0001")).collect().await.unwrap();
    assert_eq!((found.len(), found[0].note.as_deref()), (1, Some("changed")));
    let oslo = people.query(Person::by_city().city("Oslo")).collect().await.unwrap();
    assert_eq!(oslo[0].note.as_deref(), Some("changed"));
}

#[tokio::test]
async fn copies_in_other_tables_are_sealed_again_with_the_entity() {
    let recorder = Recorder::around(Memory::new());
    let client = open(&recorder, keyring(1)).await;
    for id in 1..4 {
        client.table::<Person>().insert(&person(id)).await.unwrap();
    }
    client.wait_for_copies().await;
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder()
        .primary(&scope, &root(2))
        .decrypt_only(&scope, &root(1))
        .blind_token_key(&scope, 1, &root(100));
    let both = open(&recorder, keys.build().unwrap()).await;
    let report = both.table::<Person>().reencrypt().encrypted_with(key(1).id()).await.unwrap();
    assert_eq!((report.rewritten, report.is_complete()), (9, true), "{report:?}");
    let alone = open(&recorder, keyring(2)).await.table::<Person>();
    assert_eq!(alone.query(Person::by_city().city("Oslo")).collect().await.unwrap().len(), 3);
    assert_eq!(alone.query(by_ssn("123-45-0003")).collect().await.unwrap().len(), 1);
    assert_eq!(alone.query(Person::scan()).collect().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_swapped_copy_elsewhere_does_not_open() {
    let recorder = Recorder::around(Memory::new());
    let client = open(&recorder, keyring(1)).await;
    let people = client.table::<Person>();
    for id in 1..3 {
        people.insert(&person(id)).await.unwrap();
    }
    client.wait_for_copies().await;
    let raw = Client::builder().backend(recorder.clone()).build().unwrap().dynamic("Cities");
    let two = raw.get("city_Oslo", "Sales_0002").await.unwrap().unwrap();
    let mut one = raw.get("city_Oslo", "Sales_0001").await.unwrap().unwrap();
    one.set("Ssn", two.get("Ssn").cloned().unwrap_or(Value::from(0)));
    raw.replace(&one).await.unwrap();
    let oslo = people.query(Person::by_city().city("Oslo"));
    assert!(oslo.collect().await.unwrap_err().is_decrypt());
    let results = oslo.results().collect().await.unwrap();
    assert_eq!(results.iter().filter(|row| row.is_ok()).count(), 1);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "p",
    row_key = "{id:04}",
    index(Away, table = "Cities", partition_key = "away", row_key = "{id:04}")
)]
struct Account {
    id: u32,
    #[table(encrypt, blind)]
    iban: String,
}

#[tokio::test]
async fn a_blind_column_finds_copies_in_a_table_of_their_own() {
    let recorder = Recorder::around(Memory::new());
    let client = open(&recorder, keyring(1)).await;
    let accounts = client.table::<Account>();
    for id in 1..4 {
        accounts.insert(&Account { id, iban: format!("DE{id}") }).await.unwrap();
    }
    client.wait_for_copies().await;
    let found = accounts.query(Account::away()).filter(Account::IBAN.eq("DE2"));
    let found = found.collect().await.unwrap();
    assert_eq!(found.iter().map(|account| account.id).collect::<Vec<_>>(), [2]);
    // Nothing is left to be done for them.
    assert_eq!(accounts.reencrypt().await.unwrap().rewritten, 0);
}
