//! Tests names of tables on the backends of this crate's Azure client, where case counts on some and
//! not on others, and unique values on the emulator.

use entable::{
    Azure, AzureOptions, RetryPolicy,
    backend::{Backend, TableCase},
    prelude::*,
};

use crate::emulator::{backend, new_name};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "EntableTestPeople",
    partition_key = "{department}",
    row_key = "{id:06}",
    index(
        ByBadge,
        table = "EntableTestBadges",
        partition_key = "{badge}",
        row_key = "badge",
        unique
    )
)]
struct Person {
    department: String,
    id: u32,
    badge: String,
}

fn person(id: u32, badge: &str) -> Person {
    Person { department: "Sales".into(), id, badge: badge.into() }
}

#[test]
fn case_counts_in_names_on_emulators_and_cosmos() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let account = || AzureOptions::from_account_key("me", key).unwrap();
    let case = |options| Azure::new(options).unwrap().capabilities().table_case;
    assert_eq!(case(account()), TableCase::Insensitive);
    assert_eq!(case(account().cosmos(true)), TableCase::Sensitive);
    assert_eq!(case(AzureOptions::emulator()), TableCase::Sensitive);
    for (endpoint, sensitive) in [
        ("https://me.table.core.chinacloudapi.cn", false),
        ("https://me.table.cosmos.azure.com", true),
        ("http://azurite:10002/me", true),
        ("http://me.table.localhost:10002", true),
    ] {
        let options = account().endpoint(endpoint).unwrap().allow_http();
        assert_eq!(case(options) == TableCase::Sensitive, sensitive, "{endpoint}");
    }
    assert_eq!(case(account().table_case(TableCase::Sensitive)), TableCase::Sensitive);
}

#[tokio::test]
async fn a_second_entity_of_a_capitalised_table_never_gets_a_value() {
    let Some(azure) = backend() else { return };
    let client = Client::builder().account(&azure).retry(RetryPolicy::default()).build().unwrap();
    let name = new_name();
    let people = client.table_named::<Person>(&*name);
    people.create().await.unwrap();
    let badge = new_name();
    people.insert(&person(1, &badge)).await.unwrap();
    client.wait_for_copies().await;
    for id in 2..12 {
        let error = people.insert(&person(id, &badge)).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!(error.holder(), Some(("Sales", "000001")));
    }
    let badges = client.dynamic("EntableTestBadges");
    let copy = badges.get(&badge, "badge").await.unwrap().unwrap();
    assert_eq!(copy.str("SrcT").unwrap(), name);
    client.delete_table(&name).await.unwrap();
    let people = client.table_named::<Person>(new_name());
    people.create().await.unwrap();
    people.insert(&person(2, &badge)).await.unwrap();
    client.wait_for_copies().await;
    client.delete_table(people.name()).await.unwrap();
}
