//! Tests Microsoft Entra tokens: their scopes, when they are fetched, and where they are not sent.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use azure_core::credentials::{AccessToken, TokenRequestOptions};
use entable::{Azure, AzureOptions, TokenCredential};
use time::OffsetDateTime;

use crate::{
    emulator::read,
    scripted_http::{Fake, Reply, answer, refusal},
};

/// A source of tokens that records the scopes that it was asked for. The second token differs from the
/// first, and so on.
#[derive(Debug, Default)]
struct Tokens {
    scopes: Mutex<Vec<String>>,
    /// How long a fetch takes.
    time: Duration,
    fails: bool,
}

impl Tokens {
    fn scopes(&self) -> Vec<String> {
        self.scopes.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let count = {
            let mut all = self.scopes.lock().unwrap();
            all.extend(scopes.iter().map(|scope| (*scope).to_owned()));
            all.len()
        };
        tokio::time::sleep(self.time).await;
        if self.fails {
            let kind = azure_core::error::ErrorKind::Credential;
            return Err(azure_core::Error::with_message(kind, "nobody is signed in"));
        }
        let expires = OffsetDateTime::now_utc() + time::Duration::hours(1);
        Ok(AccessToken::new(format!("t0ken{count}"), expires))
    }
}

fn options(tokens: &Arc<Tokens>) -> AzureOptions {
    AzureOptions::from_token_credential("myaccount", tokens.clone()).unwrap()
}

fn missing() -> Reply {
    refusal(404, "ResourceNotFound", "The specified resource does not exist.")
}

#[tokio::test]
async fn f16_a_token_is_asked_for_the_service_that_it_is_for() {
    let tokens = Arc::new(Tokens::default());
    let fake = Fake::new(vec![missing(); 5]);
    let cosmos = |host: &str| options(&tokens).endpoint(&format!("https://me.{host}")).unwrap();
    for options in [
        options(&tokens),
        options(&tokens).endpoint_suffix("core.usgovcloudapi.net").unwrap(),
        cosmos("table.cosmos.azure.com"),
        cosmos("table.cosmos.azure.cn:443"),
        options(&tokens).token_scope("https://storage.azure.us/.default"),
    ] {
        read(&fake.with(options), "Staff", "p", "r").await.unwrap();
    }
    let expected = [
        "https://storage.azure.com/.default",
        "https://storage.azure.com/.default",
        "https://cosmos.azure.com/.default",
        "https://cosmos.azure.cn/.default",
        "https://storage.azure.us/.default",
    ];
    assert_eq!(tokens.scopes(), expected);
    assert_eq!(fake.asked()[0].header("authorization"), Some("Bearer t0ken1"));
}

#[tokio::test]
async fn a_token_never_goes_over_plain_http() {
    let tokens = Arc::new(Tokens::default());
    for http in ["http://me.table.core.windows.net", "http://127.0.0.1:1/me"] {
        let options = options(&tokens).endpoint(http).unwrap().allow_http();
        let error = Azure::new(options).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("https"), "{error}");
    }
    assert!(tokens.scopes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn requests_share_one_fetch_and_keep_its_token() {
    let tokens = Arc::new(Tokens { time: Duration::from_secs(1), ..Tokens::default() });
    let fake = Fake::new(vec![missing(); 21]);
    let options = options(&tokens);
    let (one, other) = (fake.with(options.clone()), fake.with(options));
    let reads = (0..10).flat_map(|_| [&one, &other]).map(|azure| read(azure, "Staff", "p", "r"));
    futures_util::future::try_join_all(reads).await.unwrap();
    read(&one, "Staff", "p", "r").await.unwrap();
    assert_eq!(tokens.scopes().len(), 1, "one fetch for 21 requests of two clients");
    let used = |asked: &crate::scripted_http::Asked| {
        asked.header("authorization") == Some("Bearer t0ken1")
    };
    assert!(fake.asked().iter().all(used));
}

#[tokio::test]
async fn a_token_that_the_service_refuses_is_not_sent_again() {
    let tokens = Arc::new(Tokens::default());
    let fake = Fake::new([answer(401, &[]), missing()]);
    let azure = fake.with(options(&tokens));
    assert!(read(&azure, "Staff", "p", "r").await.unwrap_err().is_denied());
    read(&azure, "Staff", "p", "r").await.unwrap();
    assert_eq!(fake.asked()[1].header("authorization"), Some("Bearer t0ken2"));
}

#[tokio::test(start_paused = true)]
async fn a_source_without_tokens_is_asked_once_and_its_reason_is_shown() {
    let time = Duration::from_secs(1);
    let tokens = Arc::new(Tokens { fails: true, time, ..Tokens::default() });
    let azure = Fake::new([]).with(options(&tokens));
    let reads = (0..10).map(|_| read(&azure, "Staff", "p", "r"));
    for outcome in futures_util::future::join_all(reads).await {
        let error = outcome.unwrap_err();
        assert!(error.is_denied() && error.to_string().contains("sign in"), "{error}");
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        assert!(reason.is_some_and(|reason| reason.contains("nobody")), "{error:?}");
    }
    assert_eq!(tokens.scopes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_too_long_for_a_token_was_not_sent() {
    use entable::{Operation, backend::NotSent};
    let tokens = Arc::new(Tokens { time: Duration::from_secs(60), ..Tokens::default() });
    let azure = Fake::new([]).with(options(&tokens));
    let insert = Operation::insert(crate::emulator::row("p", "r", "x"));
    let error = crate::emulator::apply(&azure, "Staff", insert).await.unwrap_err();
    assert!(error.is_backend() && NotSent::is_cause_of(&error), "{error:?}");
    assert!(error.to_string().contains("token within 30 s"), "{error}");
}
