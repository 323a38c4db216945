//! Tests credentials on the emulator: valid ones, invalid ones, and signatures.

use std::time::Duration as Time;

use entable::{
    AccessPolicy, AccountKey, Azure, AzureOptions, Operation,
    backend::{Backend, TableRequest},
    prelude::*,
    sas::{AccountPermissions, AccountSas, ResourceTypes, TablePermissions, TableSas},
};
use time::{Duration, OffsetDateTime, macros::datetime};

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
        assert!(error.to_string().contains("check the endpoint and network"), "{error}");
    }
}

/// The keys do not hold the time.
#[derive(TableEntity)]
#[table(
    name = "Logins{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "id_{id:06}",
    index(ByHour, row_key = "hour_{hour:02}_{id:06}", only(user)),
    index(
        ByTown,
        table = "Towns{at:%Y%m%d}",
        partition_key = "{town}",
        row_key = "{user}_{id:06}"
    ),
    list(OfTown, table = "Lists{at:%Y%m%d}", partition_key = "{town}", row_key = "list")
)]
struct Login {
    user: String,
    id: u32,
    at: OffsetDateTime,
    hour: u8,
    town: String,
}

/// Signs for the rows of a path, and returns the table and the range of the signature.
fn signed(path: impl Path) -> Result<(String, String), Error> {
    let sas = TableSas::for_path(path)?.permissions(TablePermissions::READ).expires(soon());
    let key = AccountKey::new("me", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
    let token = sas.sign(&key)?;
    let member = |name: &str| {
        let members = token.as_query().split('&');
        members
            .filter_map(|member| member.strip_prefix(name)?.strip_prefix('='))
            .collect::<String>()
    };
    let range = ["spk", "srk", "epk", "erk"].map(member).join(" ");
    Ok((member("tn"), range))
}

#[test]
fn a_signature_is_for_one_of_the_dated_tables() {
    let noon = datetime!(2014-07-31 12:00 UTC);
    let day = Duration::DAY;
    let (point, range) = signed(Login::primary().at(noon).user("don").id(7)).unwrap();
    assert_eq!((point.as_str(), range.as_str()), ("Logins20140731", "don id_000007 don id_000007"));
    // Copies and lists: in the table of their entity, or in that of the day beside it.
    let (hours, range) = signed(Login::by_hour().at(noon).user("don").hour(7).id(1)).unwrap();
    assert_eq!(
        (hours.as_str(), range.as_str()),
        ("Logins20140731", "don hour_07_000001 don hour_07_000001")
    );
    let (town, range) = signed(Login::by_town().at(noon).town("Oslo").user("don").id(7)).unwrap();
    assert_eq!(
        (town.as_str(), range.as_str()),
        ("Towns20140731", "Oslo don_000007 Oslo don_000007")
    );
    let (list, range) = signed(Login::of_town().at(noon).town("Oslo")).unwrap();
    assert_eq!((list.as_str(), range.as_str()), ("Lists20140731", "Oslo list Oslo list"));
    // A window is of several tables, and a signature of one.
    let window = noon - day..noon + day;
    let several = signed(Login::primary().at_between(window).user("don")).unwrap_err();
    assert!(several.is_invalid(), "{several}");

    // Rows of another day are not those of the table that was named.
    let path = || Login::primary().at(noon).user("don");
    assert!(TableSas::new("Logins20140731").path(path()).is_ok());
    let other = TableSas::new("Logins20140730").path(path()).unwrap_err();
    assert!(other.is_invalid() && other.message().contains("Logins20140731"), "{other}");
    let copy = || Login::by_town().at(noon).town("Oslo");
    assert!(TableSas::new("Towns20140731").path(copy()).is_ok());
    let other = TableSas::new("Towns20140730").path(copy()).unwrap_err();
    assert!(other.is_invalid() && other.message().contains("Towns20140731"), "{other}");
}
