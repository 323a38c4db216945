//! Tests Key Vault, behind an HTTP client that answers from memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use azure_core_1::{
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

/// A vault: secrets by name, and a status for all answers where one is set.
#[derive(Debug, Default)]
struct Vault {
    secrets: Mutex<BTreeMap<String, String>>,
    status: Mutex<Option<u16>>,
    requests: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl HttpClient for Vault {
    async fn execute_request(&self, request: &Request) -> azure_core_1::Result<AsyncRawResponse> {
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
    ) -> azure_core_1::Result<AccessToken> {
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
    assert_eq!(keys.index(&tenant, None).await.unwrap().version(), 1);
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
    clock.advance(std::time::Duration::from_secs(6));
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
    let keys = keys.scopes(KeyScope::named).with_index_scopes().with_clock(clock.clone());
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let people = client.table::<Person>();
    let person = Person { tenant: "t7".into(), id: 1, ssn: "123".into() };
    people.insert(&person).await.unwrap();
    let by_ssn = || Person::by_ssn().tenant("t7").ssn("123");
    assert!(people.get(by_ssn()).await.unwrap().is_some());
    for status in [400, 401, 403, 409, 500] {
        *vault.status.lock().unwrap() = Some(status);
        clock.advance(std::time::Duration::from_secs(6));
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
