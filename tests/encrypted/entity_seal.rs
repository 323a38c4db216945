//! Tests `seal`: a property of each row authenticates all others.

use entable::{PlaintextPolicy, SealFault, Ticks, Verb, backend::layer::Request, prelude::*};
use time::{OffsetDateTime, macros::datetime};

use crate::fixture::{client, keyring, put, stored, value, with};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "p",
    row_key = "{id:03}",
    seal,
    index(ByName, row_key = "n_{name}")
)]
struct Contract {
    id: u16,
    name: String,
    amount: f64,
    note: Option<String>,
    #[table(encrypt)]
    secret: String,
}

fn contract(id: u16) -> Contract {
    Contract { id, name: format!("c{id}"), amount: 1.5, note: Some("n".into()), secret: "s".into() }
}

#[tokio::test]
async fn every_change_of_a_sealed_row_is_found() {
    let (client, _) = client().await;
    let table = client.table::<Contract>();
    table.insert(&contract(1)).await.unwrap();
    table.insert(&contract(2)).await.unwrap();
    let at = || Contract::primary().id(1);
    assert_eq!(*table.get(at()).await.unwrap().unwrap(), contract(1));
    let row = stored(&client, "p", "001").await;
    let other = stored(&client, "p", "002").await;
    assert_eq!(value(&row, "EntitySeal").unwrap().as_bytes().unwrap().len(), 43);
    let forged = [
        with(&row, "Amount", Some(Value::from(9.5))),
        with(&row, "Amount", Some(Value::from("1.5"))),
        with(&row, "Note", None),
        with(&row, "More", Some(Value::from(1))),
        with(&row, "EntityType", Some(Value::from("Contract.v1"))),
        with(&row, "EntitySeal", value(&other, "EntitySeal")),
    ];
    for forged in forged {
        put(&client, forged).await;
        let error = table.get(at()).await.unwrap_err();
        assert_eq!(error.seal_fault(), Some(SealFault::Authentication), "{error}");
    }
    put(&client, with(&row, "EntitySeal", None)).await;
    assert_eq!(table.get(at()).await.unwrap_err().seal_fault(), Some(SealFault::NotEncrypted));
    let lenient = Client::builder()
        .backend(client.backend().clone())
        .keys(keyring(1))
        .plaintext(PlaintextPolicy::Allow)
        .build()
        .unwrap();
    assert!(lenient.table::<Contract>().get(at()).await.is_ok());
    put(&client, row).await;
    assert!(table.get(at()).await.is_ok());
}

#[tokio::test]
async fn a_part_of_a_sealed_entity_is_written_with_the_whole() {
    let (client, recorder) = client().await;
    let table = client.table::<Contract>();
    table.insert(&contract(1)).await.unwrap();
    recorder.clear();
    table.patch_at(Contract::primary().id(1), Contract::patch().amount(2.5)).await.unwrap();
    assert_eq!(recorder.count(), 2, "read, then a guarded replace");
    table.insert_or_merge(&Contract { note: None, ..contract(1) }).await.unwrap();
    let read = table.get(Contract::primary().id(1)).await.unwrap().unwrap();
    assert_eq!((read.amount, read.note.as_deref()), (1.5, Some("n")));
    recorder.clear();
    table
        .update(Contract::primary().id(1), |c| {
            c.secret = "t".into();
            Ok(())
        })
        .await
        .unwrap();
    let verbs: Vec<Verb> = recorder.take().iter().flat_map(Request::verbs).collect();
    assert!(verbs.contains(&Verb::Replace), "a seal covers all properties: {verbs:?}");
    assert!(!verbs.contains(&Verb::Merge), "{verbs:?}");
    let copy = table.get(Contract::by_name().name("c1")).await.unwrap().unwrap();
    assert_eq!(copy.secret, "t");

    #[derive(Debug, Projection)]
    #[table(of = Contract)]
    struct Amount {
        amount: f64,
    }
    // A projection is checked too: so that the whole row is asked for.
    recorder.clear();
    let amount = table.get_as::<Amount>(Contract::primary().id(1)).await.unwrap().unwrap();
    assert_eq!((amount.amount, recorder.count()), (1.5, 1));
    let row = stored(&client, "p", "001").await;
    put(&client, with(&row, "Note", None)).await;
    assert!(table.get_as::<Amount>(Contract::primary().id(1)).await.unwrap_err().is_decrypt());
    let query = table.query(Contract::primary()).select::<Amount>();
    assert!(query.collect().await.unwrap_err().is_decrypt());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "b_{id:03}", seal, expires = until)]
struct Badge {
    id: u16,
    until: OffsetDateTime,
    #[table(encrypt)]
    secret: String,
}

/// Somebody without the keys sets the time of a badge to the past: nobody takes its place.
#[tokio::test]
async fn a_sealed_row_that_was_changed_has_not_expired() {
    let (client, _) = client().await;
    let badges = client.table::<Badge>();
    let badge = |secret: &str| Badge {
        id: 1,
        until: datetime!(9000-01-01 0:00 UTC),
        secret: secret.to_owned(),
    };
    badges.insert(&badge("first")).await.unwrap();
    let row = stored(&client, "p", "b_001").await;
    let past = Ticks::try_from(datetime!(2001-01-01 0:00 UTC)).unwrap();
    put(&client, with(&row, "Until", Some(Value::DateTime(past)))).await;
    let refused = badges.insert(&badge("second")).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    // What is over by its own seal is replaced.
    put(&client, row).await;
    let over = Badge { until: datetime!(2001-01-01 0:00 UTC), ..badge("first") };
    badges.insert_or_replace(&over).await.unwrap();
    badges.insert(&badge("second")).await.unwrap();
    assert_eq!(badges.get(Badge::primary().id(1)).await.unwrap().unwrap().secret, "second");
}

#[tokio::test]
async fn copies_of_sealed_entities_are_checked_repaired_and_rebuilt() {
    let (client, _) = client().await;
    let table = client.table::<Contract>();
    client.bulk().insert_all((1..20).map(contract)).await.unwrap();
    let copy = stored(&client, "p", "n_c3").await;
    put(&client, with(&copy, "Amount", Some(Value::from(99.0)))).await;
    assert!(client.dynamic("Staff").delete_at("p", "n_c4").await.unwrap());
    let report = table.check().await.unwrap();
    assert_eq!((report.findings.len(), report.repair().await.unwrap()), (2, 2));
    assert!(table.check().await.unwrap().is_clean());
    for id in 1..20 {
        assert!(table.get(Contract::primary().id(id)).await.is_ok());
        assert!(client.dynamic("Staff").delete_at("p", &format!("n_c{id}")).await.unwrap());
    }
    assert_eq!(table.rebuild(Contract::by_name()).await.unwrap().written, 19);
    assert!(table.check().await.unwrap().is_clean());
    assert_eq!(table.query(Contract::primary()).collect().await.unwrap().len(), 19);
}
