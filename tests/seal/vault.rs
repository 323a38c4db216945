//! Tests Key Vault, behind an HTTP client that answers from memory.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use azure_core::{
    credentials::{AccessToken, TokenCredential, TokenRequestOptions},
    http::{
        AsyncRawResponse, ClientOptions, HttpClient, Request, RetryOptions, StatusCode, Transport,
        headers::Headers,
    },
};
use entable::{
    CachedKeys, KeyProvider, KeyScope, RootKey, SealFault,
    backend::Memory,
    prelude::*,
    seal::vault::{
        VaultKeys,
        secrets::{SecretClient, SecretClientOptions},
    },
};

const A: &str = "4242424242424242424242424242424242424242424242424242424242424242";
const CHALLENGE: &str = "Bearer authorization=\"https://login.microsoftonline.com/tenant\", \
                         resource=\"https://vault.azure.net\"";

/// A vault: secrets by name, a status for all answers where one is set, and the time from a request to
/// its answer.
#[derive(Debug, Default)]
struct Vault {
    secrets: Mutex<BTreeMap<String, String>>,
    status: Mutex<Option<u16>>,
    delay: Mutex<Duration>,
    requests: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl HttpClient for Vault {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let is_authorized = request
            .headers()
            .iter()
            .any(|(name, value)| name.as_str() == "authorization" && value.as_str() == "Bearer t");
        let mut headers = Headers::new();
        if !is_authorized {
            headers.insert("www-authenticate", CHALLENGE);
            return Ok(AsyncRawResponse::from_bytes(StatusCode::Unauthorized, headers, ""));
        }
        let path = request.url().path().to_owned();
        self.requests.lock().unwrap().push(path.clone());
        let name = path.trim_start_matches("/secrets/").trim_end_matches('/');
        let answer = self.answer(name, headers);
        let delay = *self.delay.lock().unwrap();
        tokio::time::sleep(delay).await;
        answer
    }
}

impl Vault {
    fn answer(&self, name: &str, headers: Headers) -> azure_core::Result<AsyncRawResponse> {
        if let Some(status) = *self.status.lock().unwrap() {
            let body = r#"{"error":{"code":"Failed","message":"no"}}"#;
            return Ok(AsyncRawResponse::from_bytes(status.into(), headers, body));
        }
        let (status, body) = match self.secrets.lock().unwrap().get(name) {
            Some(value) => {
                let id = format!("https://keys.vault.azure.net/secrets/{name}/1");
                let body = serde_json::json!({ "value": value, "id": id });
                (StatusCode::Ok, body.to_string())
            }
            None => {
                let body = r#"{"error":{"code":"SecretNotFound","message":"no"}}"#;
                (StatusCode::NotFound, body.to_owned())
            }
        };
        Ok(AsyncRawResponse::from_bytes(status, headers, body))
    }
}

#[derive(Debug)]
struct Credential;

#[async_trait::async_trait]
impl TokenCredential for Credential {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://vault.azure.net/.default"]);
        let expires = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
        Ok(AccessToken::new("t", expires))
    }
}

fn vault() -> (Arc<Vault>, VaultKeys) {
    let vault = Arc::new(Vault::default());
    let client_options = ClientOptions {
        transport: Some(Transport::new(vault.clone())),
        retry: RetryOptions::none(),
        ..ClientOptions::default()
    };
    let options = SecretClientOptions { client_options, ..SecretClientOptions::default() };
    let endpoint = "https://keys.vault.azure.net";
    let client = SecretClient::new(endpoint, Arc::new(Credential), Some(options)).unwrap();
    let keys = VaultKeys::new(Arc::new(client), "entable").scopes(|partition_key| {
        match partition_key.split_once('|') {
            Some((tenant, _)) => KeyScope::named(tenant),
            None => KeyScope::default_scope(),
        }
    });
    (vault, keys)
}

fn put(vault: &Vault, name: &str, text: &str) {
    vault.secrets.lock().unwrap().insert(name.to_owned(), text.to_owned());
}

#[tokio::test]
async fn a_scopes_secret_is_its_keyring() {
    let (vault, keys) = vault();
    put(&vault, "entable-default", &format!("entable-keyring 1\ndata default primary {A}"));
    put(&vault, "entable-t7", &format!("entable-keyring 1\nindex t7 1 current {A}"));
    let scope = keys.scope_of("orders");
    let key = keys.primary(&scope).await.unwrap();
    assert_eq!(key.id().to_string(), "2c7d2f902fb02b61");
    assert_eq!(keys.get(&scope, key.id()).await.unwrap().id(), key.id());
    let tenant = keys.scope_of("t7|orders");
    assert_eq!(keys.fetch_blind_token_key(&tenant, None).await.unwrap().version(), 1);
    // The tenant's secret is asked for and has no such key; the default one's is not tried.
    assert!(keys.get(&tenant, key.id()).await.unwrap_err().is_decrypt());
    let last = vault.requests.lock().unwrap().last().cloned().unwrap();
    assert!(last.starts_with("/secrets/entable-t7"), "{last}");
}

/// A secret that holds another scope's keys gives none of them.
#[tokio::test]
async fn another_scopes_keys_in_a_secret_do_not_count() {
    let (vault, keys) = vault();
    put(&vault, "entable-t7", &format!("entable-keyring 1\ndata default primary {A}"));
    let error = keys.primary(&KeyScope::named("t7")).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error:?}");
}

#[tokio::test]
async fn what_the_vault_answers_says_whether_to_ask_again() {
    let (vault, keys) = vault();
    let scope = KeyScope::default_scope();
    let missing = keys.primary(&scope).await.unwrap_err();
    let no = Some(SealFault::KeyUnavailable { retryable: false });
    assert_eq!(missing.seal_fault(), no, "{missing:?}");
    for (status, retryable) in [(403, false), (400, false), (429, true), (500, true), (503, true)] {
        *vault.status.lock().unwrap() = Some(status);
        let error = keys.primary(&scope).await.unwrap_err();
        let expected = SealFault::KeyUnavailable { retryable };
        assert_eq!(error.seal_fault(), Some(expected), "{status}: {error:?}");
        assert!(error.to_string().contains("`entable-default`"), "{error}");
    }
}

#[tokio::test]
async fn secrets_that_are_no_keyrings_are_named_and_not_shown() {
    let (vault, keys) = vault();
    for text in [A, "", &format!("entable-keyring 1\ndata default {A}")] {
        put(&vault, "entable-default", text);
        let error = keys.primary(&KeyScope::default_scope()).await.unwrap_err();
        assert!(error.is_invalid(), "{error:?}");
        let shown = format!("{error:?} {error}");
        assert!(shown.contains("entable-default") && !shown.contains("4242"), "{shown}");
    }
    let sent = vault.requests.lock().unwrap().len();
    for scope in ["a/b", "a b", "../x", "t_7", "\u{e4}", &"x".repeat(120)] {
        let error = keys.primary(&KeyScope::named(scope)).await.unwrap_err();
        assert!(error.is_invalid(), "{error:?}");
    }
    assert_eq!(vault.requests.lock().unwrap().len(), sent, "a bad name was sent");
}

#[tokio::test]
async fn a_cache_in_front_asks_once_and_outlives_an_outage() {
    let (vault, keys) = vault();
    put(&vault, "entable-default", &format!("entable-keyring 1\ndata default primary {A}"));
    let keys = CachedKeys::new(keys);
    let scope = KeyScope::default_scope();
    let key = keys.primary(&scope).await.unwrap();
    *vault.status.lock().unwrap() = Some(503);
    for _ in 0..10 {
        assert_eq!(keys.get(&scope, key.id()).await.unwrap().id(), key.id());
        assert_eq!(keys.primary(&scope).await.unwrap().id(), key.id());
    }
    assert_eq!(vault.requests.lock().unwrap().len(), 1);
    assert_eq!(key.id(), entable::DataKey::from_root(&RootKey::from_bytes([0x42; 32])).id());
}

/// Whoever writes rows can name key ids that do not exist.
#[tokio::test]
async fn a_keyring_that_was_read_answers_for_its_scope_for_a_while() {
    let (vault, keys) = vault();
    put(&vault, "entable-default", &format!("entable-keyring 1\ndata default primary {A}"));
    let begin = entable::Ticks::new(630_000_000_000_000_000).unwrap();
    let clock = Arc::new(entable::SteppedClock::new(begin));
    let keys = keys.with_clock(clock.clone());
    let scope = KeyScope::default_scope();
    for made_up in 0..500_u64 {
        let made_up = entable::KeyId::from_bytes(made_up.to_be_bytes());
        assert!(keys.get(&scope, made_up).await.unwrap_err().is_decrypt());
    }
    assert_eq!(vault.requests.lock().unwrap().len(), 1);
    // A key that was taken out of the vault is gone soon.
    vault.secrets.lock().unwrap().clear();
    clock.advance(Duration::from_secs(6));
    assert!(keys.primary(&scope).await.unwrap_err().is_key_unavailable());
    assert_eq!(vault.requests.lock().unwrap().len(), 2);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{tenant}",
    row_key = "{id:03}",
    index(BySsn, row_key = "ssn_{ssn:hmac}")
)]
struct Person {
    tenant: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
}

/// Only a secret that does not exist says that its keys are destroyed. A vault that refuses, because of a
/// missing permission or a disabled secret, hides no rows.
#[tokio::test]
async fn a_vault_that_refuses_destroys_nothing() {
    let (vault, keys) = vault();
    let text = format!("entable-keyring 1\ndata t7 primary {A}\nindex t7 1 current {A}");
    put(&vault, "entable-t7", &text);
    let begin = entable::Ticks::new(630_000_000_000_000_000).unwrap();
    let clock = Arc::new(entable::SteppedClock::new(begin));
    let keys =
        keys.scopes(KeyScope::named).with_blind_token_key_per_scope().with_clock(clock.clone());
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let people = client.table::<Person>();
    let person = Person { tenant: "t7".into(), id: 1, ssn: "123".into() };
    people.insert(&person).await.unwrap();
    let by_ssn = || Person::by_ssn().tenant("t7").ssn("123");
    assert!(people.get(by_ssn()).await.unwrap().is_some());
    for status in [400, 401, 403, 409, 500] {
        *vault.status.lock().unwrap() = Some(status);
        clock.advance(Duration::from_secs(6));
        let error = people.get(by_ssn()).await.unwrap_err();
        assert!(error.is_key_unavailable(), "{status}: {error:?}");
        assert!(people.query(by_ssn()).collect().await.is_err(), "{status}");
    }
    assert_eq!(client.usage().shredded, 0);
    *vault.status.lock().unwrap() = None;
    vault.secrets.lock().unwrap().clear();
    assert!(people.get(by_ssn()).await.unwrap().is_none(), "the keys are destroyed");
    assert_eq!(client.usage().shredded, 1);
}

const BEGIN: i64 = 630_000_000_000_000_000;

/// A vault with keys of the scopes `default`, `t7` and `t8`, which answers after a second.
fn slow_vault() -> (Arc<Vault>, VaultKeys) {
    let (vault, keys) = vault();
    for scope in ["default", "t7", "t8"] {
        let text = format!("data {scope} primary {A}\nindex {scope} 1 current {A}");
        put(&vault, &format!("entable-{scope}"), &format!("entable-keyring 1\n{text}"));
    }
    *vault.delay.lock().unwrap() = Duration::from_secs(1);
    let keys = keys.scopes(|partition_key| {
        if partition_key.starts_with('t') {
            KeyScope::named(partition_key)
        } else {
            KeyScope::default_scope()
        }
    });
    (vault, keys.with_blind_token_key_per_scope())
}

async fn within_an_hour<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3600), work).await.unwrap()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Guests",
    partition_key = "{tenant}",
    row_key = "g_{id:04}",
    list(ByCode, partition_key = "code_{code:hmac}", row_key = "all")
)]
struct Guest {
    tenant: String,
    id: u32,
    #[table(encrypt)]
    code: String,
}

/// The reads of a list's entities ask the vault too, and one of them may wait for its answer when the query
/// asks whether the keys are destroyed.
#[tokio::test(start_paused = true)]
async fn a_list_with_many_entities_of_a_destroyed_scope_is_read() {
    let (vault, keys) = slow_vault();
    let clock = Arc::new(entable::SteppedClock::new(entable::Ticks::new(BEGIN).unwrap()));
    let keys = keys.with_clock(clock.clone());
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Guests").await.unwrap();
    let guests = client.table::<Guest>();
    for (tenant, id) in (0..50).map(|id| ("t7", id)).chain([("t8", 99)]) {
        let guest = Guest { tenant: tenant.into(), id, code: "red".into() };
        guests.insert(&guest).await.unwrap().wait_for_copies().await.unwrap();
    }
    vault.secrets.lock().unwrap().remove("entable-t7");
    clock.advance(Duration::from_secs(6));
    let found = within_an_hour(guests.query(Guest::by_code().code("red")).collect()).await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [99]);
    assert_eq!(client.usage().shredded, 50);
}

/// A clock by which every keyring is too old.
#[derive(Debug)]
struct RacingClock(AtomicI64);

impl entable::Clock for RacingClock {
    fn now(&self) -> entable::Ticks {
        let six_seconds_in_ticks = 60_000_000;
        entable::Ticks::new(self.0.fetch_add(six_seconds_in_ticks, Ordering::SeqCst)).unwrap()
    }
}

fn person(id: u32) -> Person {
    Person { tenant: "t7".into(), id, ssn: id.to_string() }
}

/// A bulk write needs keys for its next item, while its transactions in flight ask for them too.
#[tokio::test(start_paused = true)]
async fn a_bulk_write_gets_its_keys_beside_its_transactions() {
    let (_, keys) = slow_vault();
    let keys = keys.with_clock(Arc::new(RacingClock(AtomicI64::new(BEGIN))));
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let people: Vec<Person> = (0..400).map(person).collect();
    let report = within_an_hour(client.bulk().concurrency(3).insert_all(people)).await.unwrap();
    assert_eq!(report.done, 400);
}

/// A program may begin a write and wait for another one, which needs the same key, before it goes on with
/// the first.
#[tokio::test(start_paused = true)]
async fn a_write_that_nobody_polls_keeps_no_key_from_another() {
    let (vault, keys) = slow_vault();
    let clock = Arc::new(entable::SteppedClock::new(entable::Ticks::new(BEGIN).unwrap()));
    let keys = keys.with_clock(clock.clone());
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let people = client.table::<Person>();
    let (one, two) = (person(1), person(2));
    let mut first = Box::pin(people.insert(&one));
    assert!(tokio::time::timeout(Duration::from_millis(10), &mut first).await.is_err());
    within_an_hour(people.insert(&two)).await.unwrap();
    first.await.unwrap();
    assert_eq!(vault.requests.lock().unwrap().len(), 2);
    // Many who wait for a slow answer share it.
    *vault.delay.lock().unwrap() = Duration::from_secs(100);
    clock.advance(Duration::from_secs(6));
    let reads = (0..50).map(|_| people.get(Person::by_ssn().tenant("t7").ssn("1")));
    assert!(
        futures_util::future::join_all(reads).await.into_iter().all(|one| one.unwrap().is_some())
    );
    assert_eq!(vault.requests.lock().unwrap().len(), 3);
}

/// An answer that a task brings late, because nobody polled it, does not undo a later answer.
#[tokio::test(start_paused = true)]
async fn a_late_answer_brings_no_destroyed_key_back() {
    let (vault, keys) = slow_vault();
    let clock = Arc::new(entable::SteppedClock::new(entable::Ticks::new(BEGIN).unwrap()));
    let keys = keys.with_clock(clock);
    let scope = KeyScope::named("t7");
    let mut first = keys.primary(&scope);
    assert!(tokio::time::timeout(Duration::from_millis(10), &mut first).await.is_err());
    vault.secrets.lock().unwrap().clear();
    let second = within_an_hour(keys.primary(&scope)).await;
    assert!(second.unwrap_err().is_key_unavailable());
    assert!(first.await.is_ok(), "it asked before the key was destroyed");
    assert!(keys.primary(&scope).await.unwrap_err().is_key_unavailable());
}
