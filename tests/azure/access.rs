//! Tests credentials on the emulator: valid ones, invalid ones, and signatures.

use std::time::Duration as Time;

use entable::{
    AccessPolicy, AccountKey, Azure, AzureOptions, Operation,
    backend::{Backend, TableRequest},
    sas::{AccountPermissions, AccountSas, ResourceTypes, TablePermissions, TableSas},
};
use time::{Duration, OffsetDateTime};

use crate::emulator::{apply, connection, read, row, table};

/// The emulator's options with a signature in place of the key.
fn with(sas: &entable::sas::SasToken) -> Azure {
    let connection = connection().unwrap();
    let endpoint = connection.split("TableEndpoint=").nth(1).unwrap();
    // The emulator's queues may be named behind it.
    let endpoint = endpoint.split(';').next().unwrap();
    Azure::new(AzureOptions::from_sas(&sas.to_url(endpoint)).unwrap()).unwrap()
}

fn key() -> AccountKey {
    AccountKey::from_connection_string(&connection().unwrap()).unwrap()
}

fn soon() -> OffsetDateTime {
    OffsetDateTime::now_utc() + Duration::hours(1)
}

#[tokio::test]
async fn a_table_signature_allows_what_it_says() {
    let Some((azure, table)) = table().await else { return };
    apply(&azure, &table, Operation::insert(row("p", "r", "x"))).await.unwrap();
    let sas =
        TableSas::new(&*table).allow_http().permissions(TablePermissions::READ).expires(soon());
    let reader = with(&sas.sign(&key()).unwrap());
    assert!(read(&reader, &table, "p", "r").await.unwrap().is_some());
    let error = apply(&reader, &table, Operation::insert(row("p", "s", "x"))).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("the SAS does not"), "{error}");
    let writer =
        sas.permissions(TablePermissions::READ | TablePermissions::ADD).sign(&key()).unwrap();
    apply(&with(&writer), &table, Operation::insert(row("p", "s", "x"))).await.unwrap();
}

#[tokio::test]
async fn an_expired_signature_is_refused_with_advice() {
    let Some((_, table)) = table().await else { return };
    let past = OffsetDateTime::now_utc() - Duration::hours(1);
    let sas = TableSas::new(&*table).allow_http().permissions(TablePermissions::ALL).expires(past);
    let error = read(&with(&sas.sign(&key()).unwrap()), &table, "p", "r").await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    assert!(error.to_string().contains("SAS"), "{error}");
}

#[tokio::test]
async fn an_account_signature_covers_all_tables() {
    let Some((azure, table)) = table().await else { return };
    apply(&azure, &table, Operation::insert(row("p", "r", "x"))).await.unwrap();
    let resources = ResourceTypes::CONTAINER | ResourceTypes::OBJECT;
    let sas = AccountSas::new(AccountPermissions::ALL, resources).expires(soon()).allow_http();
    let azure = with(&sas.sign(&key()).unwrap());
    assert!(read(&azure, &table, "p", "r").await.unwrap().is_some());
    azure.tables(TableRequest::Delete(&table)).await.unwrap();
}

#[tokio::test]
async fn a_stored_policy_rules_the_signatures_that_name_it() {
    let Some((azure, table)) = table().await else { return };
    assert_eq!(azure.access_policies(&table).await.unwrap(), []);
    let mut policy = AccessPolicy::new("reader");
    policy.permissions = Some("r".to_owned());
    policy.start =
        Some(OffsetDateTime::now_utc().replace_nanosecond(0).unwrap() - Duration::hours(1));
    policy.expiry = Some(soon().replace_nanosecond(0).unwrap());
    azure.set_access_policies(&table, &[policy.clone()]).await.unwrap();
    assert_eq!(azure.access_policies(&table).await.unwrap(), [policy.clone()]);
    let reader = with(&TableSas::new(&*table).allow_http().policy("reader").sign(&key()).unwrap());
    assert!(read(&reader, &table, "p", "r").await.unwrap().is_none());
    assert!(apply(&reader, &table, Operation::insert(row("p", "r", "x"))).await.is_err());
    azure.set_access_policies(&table, &[]).await.unwrap();
    assert!(read(&reader, &table, "p", "r").await.unwrap_err().is_denied());
    let six: Vec<_> = (0..6).map(|at| AccessPolicy::new(at.to_string())).collect();
    assert!(azure.set_access_policies(&table, &six).await.unwrap_err().is_invalid());
    let long = AccessPolicy::new("x".repeat(65));
    assert!(azure.set_access_policies(&table, &[long]).await.unwrap_err().is_invalid());
}

#[tokio::test]
async fn a_wrong_key_is_denied_with_advice() {
    let Some(connection) = connection() else { return };
    let options =
        AzureOptions::from_connection_string(&connection.replace("Eby8", "AAAA")).unwrap();
    let error = read(&Azure::new(options).unwrap(), "Staff", "p", "r").await.unwrap_err();
    assert!(error.is_denied(), "{error:?}");
    assert!(error.to_string().contains("check that the key is this account's"), "{error}");
}

#[tokio::test]
async fn a_place_where_nobody_listens_is_said_to_be_one() {
    for place in ["http://127.0.0.1:9/devstoreaccount1", "http://nowhere.table.invalid"] {
        let options = AzureOptions::emulator().endpoint(place).unwrap();
        let azure = Azure::new(options.allow_http().connect_timeout(Time::from_secs(2))).unwrap();
        let error =
            apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap_err();
        // Nothing was sent: no doubt about the write.
        assert!(error.is_backend(), "{error:?}");
        assert!(error.to_string().contains("check endpoint and network"), "{error}");
    }
}
