//! Tests bad input: each fails at once with a typed error that names a remedy and quotes no secret.

use std::time::{Duration, Instant};

use entable::{
    AccessPolicy, AccountKey, Azure, AzureOptions, ErrorKind, KeyScope, Keyring, Operation,
    RootKey,
    backend::Memory,
    prelude::*,
    sas::{TablePermissions, TableSas},
};
use time::{OffsetDateTime, macros::datetime};

use crate::{
    emulator::{apply, connection, new_name, options, read, row},
    scripted_http::{Fake, KEY, answer, refusal},
};

const SAS: &str = "sv=2019-02-02&tn=Staff&sp=r&se=2030-01-01T00%3A00%3A00Z&sig=s3cretSignature%3D";

#[test]
fn every_form_of_connection_string_is_read_and_none_is_quoted() {
    let read = |text: &str| {
        let options = AzureOptions::from_connection_string(text)?;
        assert!(
            !format!("{options:?}").contains("s3cret") && !format!("{options:?}").contains(KEY)
        );
        let client = Client::azure(options.allow_http())?;
        let url = client.table_url("Staff")?;
        Ok::<_, Error>((url, client.sas_cache(Duration::from_secs(60)).is_ok()))
    };
    let keyed = format!("AccountName=me;AccountKey={KEY}");
    for (text, url, has_key) in [
        (keyed.clone(), "https://me.table.core.windows.net/Staff", true),
        (format!("  {keyed} ; "), "https://me.table.core.windows.net/Staff", true),
        (format!(";;{keyed};;"), "https://me.table.core.windows.net/Staff", true),
        (
            format!("DefaultEndpointsProtocol=http;{keyed}"),
            "http://me.table.core.windows.net/Staff",
            true,
        ),
        (
            format!("{keyed};EndpointSuffix=core.usgovcloudapi.net"),
            "https://me.table.core.usgovcloudapi.net/Staff",
            true,
        ),
        (
            format!("{keyed};EndpointSuffix=.core.chinacloudapi.cn"),
            "https://me.table.core.chinacloudapi.cn/Staff",
            true,
        ),
        (
            format!("{keyed};TableEndpoint=https://me.table.cosmos.azure.com:443/"),
            "https://me.table.cosmos.azure.com/Staff",
            true,
        ),
        (
            format!("{keyed};BlobEndpoint=https://x;Unknown=1;TableEndpoint=http://[::1]:7/me"),
            "http://[::1]:7/me/Staff",
            true,
        ),
        (
            format!("TableEndpoint=https://me.table.core.windows.net;SharedAccessSignature={SAS}"),
            "https://me.table.core.windows.net/Staff",
            false,
        ),
        (
            format!("AccountName=me;SharedAccessSignature=?{SAS}"),
            "https://me.table.core.windows.net/Staff",
            false,
        ),
        (
            "UseDevelopmentStorage=true".into(),
            "http://127.0.0.1:10002/devstoreaccount1/Staff",
            true,
        ),
        (
            "usedevelopmentstorage=TRUE;DevelopmentStorageProxyUri=http://emulator/".into(),
            "http://emulator:10002/devstoreaccount1/Staff",
            true,
        ),
    ] {
        assert_eq!(read(&text).unwrap(), (url.to_owned(), has_key), "{text}");
    }
}

#[test]
fn a_malformed_connection_string_is_refused_and_not_quoted() {
    let bad_key = "c2VjcmV0LXNlY3JldC1z*ZWNyZXQ=";
    for text in [
        String::new(),
        ";;;".into(),
        "s3cret".into(),
        "=s3cret".into(),
        format!("AccountKey={KEY}"),
        "AccountName=me".into(),
        "AccountName=;AccountKey=".into(),
        format!("AccountName=;AccountKey={KEY}"),
        format!("AccountName=me;AccountKey={bad_key}"),
        format!("AccountName=me;AccountKey={}", &KEY[1..]),
        "AccountName=me;AccountKey=".into(),
        format!("AccountName=me/../you;AccountKey={KEY}"),
        format!("AccountName=me\r\nX-Header: 1;AccountKey={KEY}"),
        format!("AccountName=m\u{e9};AccountKey={KEY}"),
        format!("AccountName=me;AccountKey={KEY};DefaultEndpointsProtocol=ftp"),
        format!("AccountName=me;AccountKey={KEY};DefaultEndpointsProtocol=javascript:s3cret//"),
        format!("AccountName=me;AccountKey={KEY};EndpointSuffix=s3cret@evil.example"),
        format!("AccountName=me;AccountKey={KEY};EndpointSuffix=evil.example/x?s3cret"),
        format!("AccountName=me;AccountKey={KEY};EndpointSuffix="),
        format!("AccountName=me;AccountKey={KEY};EndpointSuffix=a b"),
        format!("AccountName=me;AccountKey={KEY};TableEndpoint=s3cret"),
        format!("AccountName=me;AccountKey={KEY};TableEndpoint=file:///s3cret"),
        format!("AccountName=me;AccountKey={KEY};TableEndpoint=https://user:s3cret@host.example"),
        format!("AccountName=me;AccountKey={KEY};TableEndpoint="),
        format!("AccountName=me;AccountName=you;AccountKey={KEY}"),
        format!("AccountName=me;AccountKey={KEY};SharedAccessSignature={SAS}"),
        format!("SharedAccessSignature={SAS}"),
        "AccountName=me;SharedAccessSignature=sv=1&sp=s3cret".into(),
        "AccountName=me;SharedAccessSignature=sv=1&sig=s3 cret".into(),
        "AccountName=me;SharedAccessSignature=sv=1&sig=s3cret#x".into(),
        "UseDevelopmentStorage=s3cret".into(),
        "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=s3cret".into(),
        "\u{0}AccountName=me".into(),
    ] {
        let error = AzureOptions::from_connection_string(&text)
            .and_then(Client::azure)
            .map(drop)
            .expect_err(&text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}: {error}");
        let said = format!("{error} {error:?}");
        for secret in ["s3cret", KEY, &KEY[1..], bad_key] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}

#[test]
fn a_malformed_sas_or_key_is_refused_and_not_quoted() {
    for text in [
        "",
        "?",
        "s3cret",
        "sig=",
        "https://me.table.core.windows.net/Staff",
        "https://me.table.core.windows.net/Staff?sv=s3cret",
        "https://?sig=s3cret",
        "ftp://me.table.core.windows.net/Staff?sig=s3cret",
        "https://127.0.0.1:1/?sig=s3cret",
        "sv=1&sig=s3cret\r\nX-Header: 1",
        "sv=1&sig=s3cr\u{e9}t",
    ] {
        let error = AzureOptions::from_sas(text).and_then(Client::azure).map(drop).expect_err(text);
        assert!(error.is_invalid(), "{text}: {error}");
        assert!(!format!("{error} {error:?}").contains("s3cr"), "{error:?}");
    }
    // The token alone does not say whose it is.
    let error = Azure::new(AzureOptions::from_sas(SAS).unwrap()).unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("give the account or the endpoint"),
        "{error}"
    );
    for key in ["", "s3cret!", "====", "c2VjcmV0"] {
        let made = AccountKey::new("me", key);
        if let Err(error) = &made {
            assert!(error.is_invalid() && !format!("{error:?}").contains("s3cret"), "{error:?}");
        }
        assert_eq!(made.is_ok(), key == "c2VjcmV0", "{key}");
    }
}

/// The service's answers to credentials that do not permit a request.
#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let keyed = || AzureOptions::from_account_key("myaccount", KEY).unwrap();
    let guest = || AzureOptions::from_sas(SAS).unwrap().account("myaccount").unwrap();
    for (options, status, code, advice) in [
        (keyed(), 403, "AuthenticationFailed", "check that the key is this account's"),
        (keyed(), 403, "AuthorizationFailure", "check that the key is this account's"),
        (guest(), 403, "AuthenticationFailed", "has started and has not expired"),
        (guest(), 403, "AuthorizationFailure", "does not cover this table, key range"),
        (guest(), 403, "AuthorizationPermissionMismatch", "needs both add and update"),
        (guest(), 403, "AuthorizationResourceTypeMismatch", "does not cover this kind"),
        (keyed(), 404, "TableNotFound", "create the table first"),
        (keyed(), 409, "TableBeingDeleted", "wait until the service has deleted it"),
    ] {
        let fake = Fake::new(vec![refusal(status, code, "This request is not authorized."); 2]);
        let azure = fake.with(options);
        let read = read(&azure, "Staff", "p", "r").await.map(drop);
        let write = apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.map(drop);
        for error in [read.unwrap_err(), write.unwrap_err()] {
            assert_eq!((error.code(), error.status()), (Some(code), Some(status)), "{error:?}");
            assert!(error.to_string().contains(advice), "{error}");
            assert_eq!(error.is_denied(), status == 403, "{error}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_table_is_said_to_be_missing() {
    let Some(options) = options() else { return };
    let azure = Azure::new(options).unwrap();
    let table = new_name();
    for error in [
        read(&azure, &table, "p", "r").await.map(drop).unwrap_err(),
        apply(&azure, &table, Operation::insert(row("p", "r", "x"))).await.map(drop).unwrap_err(),
    ] {
        assert!(error.is_not_found() && error.code() == Some("TableNotFound"), "{error:?}");
        assert_eq!(error.table(), Some(&*table));
        assert!(error.to_string().contains("create the table first"), "{error}");
    }
}

/// Through a client, which tries again: it comes to an end all the same.
#[tokio::test]
async fn nothing_hangs_where_nobody_answers() {
    use entable::backend::layer::RetryPolicy;

    // A port that was free a moment ago, and a listener that never accepts.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/me", listener.local_addr().unwrap());
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/me", listener.local_addr().unwrap())
    };
    for (place, expected) in [(silent, "did not answer within"), (closed, "cannot be reached")] {
        let options = AzureOptions::from_account_key("me", KEY).unwrap().endpoint(&place).unwrap();
        let options = options.timeout(Duration::from_millis(200));
        let delay = Duration::from_millis(10);
        let policy = RetryPolicy::new().attempts(3).delays(delay, delay);
        let azure = Azure::new(options).unwrap();
        let client = Client::builder().account(&azure).retry(policy).build().unwrap();
        let begun = Instant::now();
        let error = client.dynamic("Staff").get("p", "r").await.unwrap_err();
        assert!(error.is_backend() && error.to_string().contains(expected), "{error}");
        assert!(client.access_policies("Staff").await.unwrap_err().is_backend());
        let error = client.set_access_policies("Staff", &[]).await.unwrap_err();
        assert_eq!(error.is_ambiguous(), expected == "did not answer within", "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_wrong_account_is_denied() {
    let Some(connection) = connection() else { return };
    let stranger = connection.replace("AccountName=devstoreaccount1", "AccountName=stranger");
    let options = AzureOptions::from_connection_string(&stranger).unwrap();
    let error = read(&Azure::new(options).unwrap(), "Staff", "p", "r").await.unwrap_err();
    assert!(error.is_denied() || error.is_invalid(), "{error:?}");
}

#[test]
fn a_credential_goes_over_http_only_where_it_is_permitted() {
    let open = |options: AzureOptions| Azure::new(options).map(drop);
    let keyed = || AzureOptions::from_account_key("me", KEY).unwrap();
    let signed = || AzureOptions::from_sas(SAS).unwrap().account("me").unwrap();
    for here in ["http://127.0.0.1:1/me", "http://[::1]:1/me", "http://localhost:1/me"] {
        for options in [keyed(), signed()] {
            open(options.endpoint(here).unwrap()).unwrap();
        }
    }
    for elsewhere in
        ["http://me.table.core.windows.net", "http://127.evil.com", "http://10.0.0.1/me"]
    {
        for options in [keyed(), signed()] {
            let options = options.endpoint(elsewhere).unwrap();
            let error = open(options.clone()).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains("allow_http"), "{error}");
            open(options.allow_http()).unwrap();
        }
    }
}

#[test]
fn a_key_in_the_place_of_the_name_is_not_quoted() {
    for error in [
        AzureOptions::from_account_key(KEY, "bXlhY2NvdW50").unwrap_err(),
        AzureOptions::from_sas(SAS).unwrap().account(KEY).unwrap_err(),
        AccountKey::new(KEY, "bXlhY2NvdW50").unwrap_err(),
    ] {
        assert!(
            error.is_invalid() && !format!("{error} {error:?}").contains(&KEY[..20]),
            "{error}"
        );
    }
}

#[test]
fn a_proxy_and_a_certificate_are_checked_and_not_quoted() {
    let options = || AzureOptions::from_account_key("me", KEY).unwrap();
    Azure::new(options().proxy("http://user:s3cret@proxy.example.com:3128").unwrap()).unwrap();
    for error in [
        options().proxy("http://s3cret@:x").unwrap_err(),
        options().root_certificate(b"s3cret").unwrap_err(),
    ] {
        assert!(error.is_invalid() && !format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}

/// A time before the year 1 would become another time, and a policy that has expired would be valid.
#[tokio::test]
async fn a_policy_with_a_time_that_the_service_cannot_have_is_not_sent() {
    let before: OffsetDateTime = datetime!(-0001-12-31 23:59:59 UTC);
    // In UTC, this is in the year 10000.
    let after: OffsetDateTime = datetime!(9999-12-31 23:59:59 -5);
    for time in [before, after] {
        for is_start in [true, false] {
            let mut policy = AccessPolicy::new("readers");
            *if is_start { &mut policy.start } else { &mut policy.expiry } = Some(time);
            let fake = Fake::new([answer(204, &[])]);
            let set = fake.azure().set_access_policies("Staff", &[policy]).await;
            assert_eq!(fake.asked().len(), 0, "{:?}", fake.asked());
            let error = set.unwrap_err();
            assert!(error.is_invalid() && error.table() == Some("Staff"), "{error:?}");
            let element = if is_start { "Start" } else { "Expiry" };
            for part in [element, "`readers`", "years 1 to 9999"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }
}

/// A patient whose rows are found by a secret value.
#[derive(TableEntity)]
#[table(
    name = "Patients",
    partition_key = "{clinic}",
    row_key = "ssn_{ssn:hmac}",
    index(BySsn, table = "Ssns", partition_key = "{ssn:hmac}", row_key = "{clinic}")
)]
struct Patient {
    clinic: String,
    #[table(encrypt)]
    ssn: String,
}

#[tokio::test]
async fn keys_without_their_tokens_are_not_signed() {
    let path = || Patient::primary().clinic("North").ssn("123-45-6789");
    let by_ssn = || Patient::by_ssn().ssn("123-45-6789");
    let point: Point<Patient> = path();
    let tokens_missing = [
        TableSas::for_path(path()),
        TableSas::new("Patients").path(path()),
        TableSas::for_path(by_ssn()),
        TableSas::new("Ssns").path(by_ssn()),
        TableSas::new("Patients").keys(&point.keys()),
    ];
    for (at, signed) in tokens_missing.into_iter().enumerate() {
        let error = signed.unwrap_err();
        let text = error.to_string();
        assert!(error.is_invalid() && text.contains("blind token"), "{at}: {text}");
        assert!(at == 4 || text.contains("Keys::point(stored.partition_key()"), "{at}: {text}");
        assert!(!text.contains("123-45-6789"), "{at}: {text}");
    }
    // The partition holds no token.
    assert!(TableSas::for_path(Patient::primary().clinic("North")).is_ok());

    // What the message says to write is signed.
    let (scope, root) = (KeyScope::default_scope(), |byte| RootKey::from_bytes([byte; 32]));
    let keys =
        Keyring::builder().primary(&scope, &root(7)).blind_token_key(&scope, 1, &root(8)).build();
    let client = Client::builder().backend(Memory::new()).keys(keys.unwrap()).build().unwrap();
    let patients = client.table::<Patient>();
    patients.create().await.unwrap();
    patients.insert(&Patient { clinic: "North".into(), ssn: "123-45-6789".into() }).await.unwrap();
    let stored = patients.get(path()).await.unwrap().unwrap();
    let keys = Keys::point(stored.partition_key(), stored.row_key());
    let sas = TableSas::new("Patients")
        .keys(&keys)
        .unwrap()
        .permissions(TablePermissions::READ)
        .expires(datetime!(2100-01-01 0:00 UTC));
    let token = sas.sign(&AccountKey::new("me", KEY).unwrap()).unwrap();
    let range = format!("&srk={0}&epk=North&erk={0}&", stored.row_key());
    assert!(stored.row_key().len() == 30 && token.as_query().contains(&range), "{token:?}");
}
