//! Tests user delegation keys: how they are requested, what they sign, and what does not leave this process.
//!
//! The exchanges are made by hand from Microsoft's pages "Get User Delegation Key" and "Create a user
//! delegation SAS". Nobody has tried them on the service yet.

use std::sync::{Arc, atomic::Ordering};

use entable::{
    Azure, AzureOptions, Client,
    backend::{
        BoxFuture,
        azure::{HttpAnswer, HttpRequest, SendFailure, Transport},
    },
    sas::{TablePermissions, TableSas},
};
use time::{Duration, macros::datetime};

use crate::{
    emulator::read,
    raw_server::{http, listen},
    scripted_http::{Fake, KEY, Reply, answer, refusal},
};

/// Options with an identity whose token is `t0ken`.
#[cfg(not(feature = "azure"))]
fn identity() -> AzureOptions {
    use azure_storage::{CloudLocation, StorageCredentials};
    let location = CloudLocation::Public { account: "myaccount".into() };
    let token = StorageCredentials::bearer_token("t0ken");
    AzureOptions::from_storage_credentials(location, token).unwrap()
}

/// Options with an identity whose token is `t0ken`.
#[cfg(feature = "azure")]
fn identity() -> AzureOptions {
    use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};

    #[derive(Debug)]
    struct OneToken;

    #[async_trait::async_trait]
    impl TokenCredential for OneToken {
        async fn get_token(
            &self,
            _: &[&str],
            _: Option<TokenRequestOptions<'_>>,
        ) -> azure_core::Result<AccessToken> {
            Ok(AccessToken::new("t0ken", datetime!(9999-01-01 0:00 UTC)))
        }
    }

    AzureOptions::from_token_credential("myaccount", Arc::new(OneToken)).unwrap()
}

const DAY: std::ops::Range<time::OffsetDateTime> =
    datetime!(2026-04-01 0:00 UTC)..datetime!(2026-04-02 0:00 UTC);

/// The answer of the service, with these values.
fn key_answer(value: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>\
         <SignedOid>11111111-2222-3333-4444-555555555555</SignedOid>\
         <SignedTid>66666666-7777-8888-9999-aaaaaaaaaaaa</SignedTid>\
         <SignedStart>2026-04-01T00:00:00Z</SignedStart>\
         <SignedExpiry>2026-04-02T00:00:00Z</SignedExpiry>\
         <SignedService>t</SignedService><SignedVersion>2025-07-05</SignedVersion>\
         <Value>{value}</Value></UserDelegationKey>"
    )
}

fn reply(body: String) -> Reply {
    Reply::Answer(200, vec![], body)
}

#[tokio::test]
async fn an_identity_requests_a_key_and_its_signature_opens_a_table() {
    let fake = Fake::new([
        answer(503, &[("x-ms-error-code", "ServerBusy"), ("retry-after", "0")]),
        reply(key_answer(KEY)),
        refusal(404, "ResourceNotFound", "none"),
    ]);
    let transport = Arc::clone(&fake) as Arc<dyn Transport>;
    let client = Client::azure(identity().transport(Arc::clone(&transport))).unwrap();
    // The first answer is "too busy": the request changes nothing, so it is repeated.
    let key = client.user_delegation_key(DAY).await.unwrap();
    let asked = &fake.asked()[1];
    assert_eq!(asked.method, "POST");
    let url = "https://myaccount.table.core.windows.net/?restype=service&comp=userdelegationkey";
    assert_eq!(asked.url, url);
    assert_eq!(asked.header("x-ms-version"), Some("2025-07-05"));
    assert_eq!(asked.header("authorization"), Some("Bearer t0ken"));
    assert_eq!(
        asked.body,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo>\
         <Start>2026-04-01T00:00:00Z</Start><Expiry>2026-04-02T00:00:00Z</Expiry></KeyInfo>"
    );
    assert_eq!((key.account(), key.starts()..key.expires()), ("myaccount", DAY));

    let sas = TableSas::new("Staff").permissions(TablePermissions::READ).expires(DAY.end);
    let url = sas.sign_delegated(&key).unwrap().to_url(&client.table_url("Staff").unwrap());
    let guest = Azure::new(AzureOptions::from_sas(&url).unwrap().transport(transport)).unwrap();
    assert!(read(&guest, "Staff", "p", "r").await.unwrap().is_none());
    let sent = &fake.asked()[2];
    assert!(sent.url.contains("Staff(PartitionKey='p',RowKey='r')?sv=2025-07-05&tn=Staff&sp=r&"));
    assert!(
        sent.url.contains("&skoid=11111111-2222-3333-4444-555555555555&sktid="),
        "{}",
        sent.url
    );
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn only_an_identity_on_table_storage_asks_and_for_seven_days_at_most() {
    let key = AzureOptions::from_account_key("myaccount", KEY).unwrap();
    let sas = AzureOptions::from_sas("sv=1&sig=c2ln").unwrap().account("myaccount").unwrap();
    let cosmos = identity().endpoint("https://myaccount.table.cosmos.azure.com").unwrap();
    for (options, way_out) in [(key, "sign with the"), (sas, "identity"), (cosmos, "Cosmos DB")] {
        let error = Fake::new([]).with(options).user_delegation_key(DAY).await.unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains(way_out), "{error}");
    }
    let error = Client::memory().user_delegation_key(DAY).await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    let week = DAY.start..DAY.start + Duration::days(7);
    let fake = Fake::new([reply(key_answer(KEY))]);
    let azure = fake.with(identity());
    azure.user_delegation_key(week.clone()).await.unwrap();
    for wrong in [week.start..week.end + Duration::SECOND, DAY.start..DAY.start, DAY.end..DAY.start]
    {
        let error = azure.user_delegation_key(wrong).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("seven days"), "{error}");
    }
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_refusal_names_the_role_and_a_lost_answer_is_no_write() {
    let denied = refusal(403, "AuthorizationPermissionMismatch", "This request is not authorized.");
    let fake = Fake::new([denied, Reply::Reset, answer(200, &[]), reply(key_answer("no base64!"))]);
    let azure = fake.with(identity());
    let error = azure.user_delegation_key(DAY).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("Storage Table Delegator"), "{error}");
    for _ in 0..3 {
        let error = azure.user_delegation_key(DAY).await.unwrap_err();
        assert!(error.is_backend() && !error.to_string().contains("no base64!"), "{error}");
    }
}

#[tokio::test]
async fn no_part_of_the_key_is_shown() {
    let secret = "czNjcmV0czNjcmV0czNjcmV0";
    let fake = Fake::new([reply(key_answer(secret)), reply(key_answer(&format!("{secret}\u{1}")))]);
    let azure = fake.with(identity());
    let key = azure.user_delegation_key(DAY).await.unwrap();
    let sas = TableSas::new("Staff").permissions(TablePermissions::READ).expires(DAY.end);
    let token = sas.sign_delegated(&key).unwrap();
    let (_, signature) = token.as_query().rsplit_once("sig=").unwrap();
    let late = sas.expires(DAY.end + Duration::DAY).sign_delegated(&key).unwrap_err();
    let unreadable = azure.user_delegation_key(DAY).await.unwrap_err();
    let shown = format!("{key:?} {token:?} {late} {late:?} {unreadable} {unreadable:?}");
    for hidden in [secret, "s3cret", signature, "t0ken", "11111111-2222"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
    assert!(shown.contains("myaccount"), "{shown}");
}

/// Leads requests to another address, behind the check that no token goes over plain HTTP.
#[derive(Debug)]
struct Rerouted(Arc<dyn Transport>, String);

impl Transport for Rerouted {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        let (_, path) = request.url().split_once(".net/").unwrap();
        let request = request.clone().with_url(format!("{}/{path}", self.1));
        Box::pin(async move { self.0.send(&request).await })
    }
}

#[tokio::test]
async fn the_request_passes_through_the_transport() {
    let (address, asked) = listen(http("200 OK", "", &key_answer(KEY))).await;
    let options =
        identity().wrap_transport(move |inner| Arc::new(Rerouted(inner, address.clone())));
    let key = Azure::new(options).unwrap().user_delegation_key(DAY).await.unwrap();
    assert_eq!(key.expires(), DAY.end);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
