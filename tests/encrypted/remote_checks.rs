//! Tests checks of sealed remote copies, which compare plain contents, not bytes.

use std::sync::Arc;

use entable::{
    Condition, OutboxOptions, SteppedClock, Ticks, backend::Memory, maintain::FindingKind,
    prelude::*,
};

use crate::fixture::keyring;

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
}

fn person(id: u32) -> Person {
    Person { department: "Sales".into(), id, city: "Oslo".into(), ssn: format!("123-45-{id:04}") }
}

#[tokio::test(start_paused = true)]
async fn sealed_copies_are_compared_and_mended() {
    let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
    let client = Client::builder()
        .backend(Memory::with_clock(clock.clone()))
        .clock(clock.clone())
        .keys(keyring(1))
        .build()
        .unwrap();
    let people = client.table::<Person>();
    people.create().await.unwrap();
    for id in 1..=4 {
        people.insert(&person(id)).await.unwrap();
    }
    client.wait_for_copies().await;
    let report = people.check().await.unwrap();
    assert!(report.is_clean() && report.progress.suspects == 0, "{report:?}");

    let cities = client.dynamic("Cities");
    cities.delete("city_Oslo", "Sales_0001", Condition::Any).await.unwrap();
    // Bytes that are sealed for another row do not open here.
    let other = cities.get("city_Oslo", "Sales_0003").await.unwrap().unwrap();
    let mut foreign = DynamicEntity::new("city_Oslo", "Sales_0002").with_framework_names();
    for (name, value) in other.properties().clone() {
        foreign.set(&name, value);
    }
    cities.insert_or_replace(&foreign).await.unwrap();
    // A copy of a value that the entity does not have any more.
    let all = client.dynamic("People").query(Filter::parse("PartitionKey ge 'ssn_'").unwrap());
    let all = all.allow_scan().collect().await.unwrap();
    let token = all.iter().find(|row| row.row_key() == "at_Sales_0004").unwrap();
    let mut orphan =
        DynamicEntity::new(token.partition_key(), "at_Sales_0003").with_framework_names();
    for (name, value) in token.properties().clone() {
        orphan.set(&name, value);
    }
    client.dynamic("People").insert_or_replace(&orphan).await.unwrap();

    let report = people.check().await.unwrap();
    let mut kinds: Vec<_> =
        report.findings.iter().map(|f| (f.index, f.row_key.as_str(), f.kind)).collect();
    kinds.sort_by_key(|(index, key, _)| (*index, *key));
    let expected = [
        ("ByCity", "Sales_0001", FindingKind::Missing),
        ("ByCity", "Sales_0002", FindingKind::Stale),
        ("BySsn", "at_Sales_0003", FindingKind::Orphan),
    ];
    assert_eq!(kinds, expected);
    let printed = format!("{report:?}");
    assert!(!printed.contains("123-45"), "{printed}");

    assert_eq!(report.repair().await.unwrap(), 3);
    let worker = client.worker();
    worker.drain().await.unwrap();
    clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
    worker.drain().await.unwrap();
    assert!(people.check().await.unwrap().is_clean());
    let oslo = people.query(Person::by_city().city("Oslo")).collect().await.unwrap();
    let mut found: Vec<String> = oslo.iter().map(|person| person.ssn.clone()).collect();
    found.sort();
    assert_eq!(found, [1, 2, 3, 4].map(|id| format!("123-45-{id:04}")));
}
