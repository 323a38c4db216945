//! The last step of a request: sets its body, signs it, sends it, and takes the answer.
//!
//! The transport is the last policy in the pipeline of `azure_core`. It takes the answer out of the
//! pipeline, because the client above would drop the code and the message of an error, take a failed
//! batch for a success, and refuse an answer that lacks an unimportant header.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use azure_core::{
    Body, Context, HttpClient, Policy, PolicyResult, Request,
    headers::{self, HeaderName, Headers},
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt, stream};

use super::{
    credential::{Authorization, Credential, Service},
    endpoint::Endpoint,
    options::AzureOptions,
};
use crate::{
    batch::Deadline,
    error::{BoxError, Error, ErrorKind, Result},
};

/// One HTTP request and the answer to it. The exchange travels with the request through the pipeline of
/// the Azure client. The exchange's body and path replace those that the Azure client wrote, and the
/// transport stores the answer in the exchange.
#[derive(Debug, Default)]
pub(super) struct HttpExchange {
    body: Option<Bytes>,
    path: Option<String>,
    deadline: Option<Deadline>,
    outcome: Mutex<Option<Result<HttpAnswer, SendFailure>>>,
}

/// An answer of the service, of any status.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Bytes,
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum SendFailure {
    /// The request was not sent, since its deadline is over.
    Late(Error),
    /// The request was not sent.
    Unsent(&'static str, BoxError),
    /// The answer was lost; the service may have carried the request out.
    Lost(BoxError),
    /// The credential gave no token, so the request was not sent.
    Token(BoxError),
}

impl HttpExchange {
    /// Creates the exchange of a request and its answer, without an answer yet. A `body` or `path` of `None`
    /// keeps the body or path that the Azure client wrote for the request.
    pub(super) fn new(
        body: Option<Bytes>,
        path: Option<String>,
        deadline: Option<Deadline>,
    ) -> Self {
        Self { body, path, deadline, outcome: Mutex::new(None) }
    }

    /// Takes the answer, or the reason why there is no answer. Returns `None` if the request never
    /// reached the transport, or if the answer was taken before.
    pub(super) fn take_answer(&self) -> Option<Result<HttpAnswer, SendFailure>> {
        // A poisoned lock is used on: both functions only replace one value, which cannot stop half
        // way.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set_outcome(&self, outcome: Result<HttpAnswer, SendFailure>) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

impl HttpAnswer {
    pub(super) fn header_value(&self, name: &'static str) -> Option<&str> {
        self.headers.get_optional_str(&HeaderName::from_static(name))
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// An exchange in the form that a context of `azure_core` can hold.
pub(super) struct SharedHttpExchange(pub(super) Arc<HttpExchange>);

/// The transport of one account, the last policy of its pipeline.
#[derive(Debug)]
pub(super) struct AuthorizingTransport {
    client: Sender,
    credential: Credential,
    account: String,
    service: Service,
}

#[derive(Debug)]
enum Sender {
    Pooled(reqwest::Client),
    Given(Arc<dyn HttpClient>),
}

impl AuthorizingTransport {
    pub(super) fn new(
        endpoint: &Endpoint,
        account: String,
        service: Service,
        options: &AzureOptions,
    ) -> Result<Self> {
        let client = match &options.http_client {
            Some(client) => Sender::Given(Arc::clone(client)),
            None => Sender::Pooled(new_pooled_client(endpoint, options)?),
        };
        Ok(Self { client, credential: options.credential.clone(), account, service })
    }

    async fn send(
        &self,
        exchange: &HttpExchange,
        request: &mut Request,
    ) -> Result<HttpAnswer, SendFailure> {
        // Everything is replaced before the request is signed: the signature covers the path, and
        // for queues also the query and the length of the body.
        encode_blanks(request.url_mut());
        if let Some(path) = &exchange.path {
            request.url_mut().set_path(path);
        }
        if let Some(body) = &exchange.body {
            request.insert_header(headers::CONTENT_LENGTH, body.len().to_string());
            request.set_body(body.clone());
        }
        let authorization =
            self.credential.sign_or_get_token(request, &self.account, self.service).await;
        let authorization = authorization.map_err(|error| SendFailure::Token(error.into()))?;
        // Fetching a token may have taken long: nothing is awaited between here and the request.
        exchange.deadline.as_ref().map_or(Ok(()), Deadline::check).map_err(SendFailure::Late)?;
        match (&self.client, authorization) {
            (Sender::Pooled(client), authorization) => {
                send_pooled(client, request, authorization).await
            }
            (Sender::Given(client), authorization) => {
                send_authorized(&**client, request, authorization).await
            }
        }
    }
}

/// Makes an HTTP client that keeps idle connections for 60 s, the time after which the service closes
/// them.
fn new_pooled_client(endpoint: &Endpoint, options: &AzureOptions) -> Result<reqwest::Client> {
    // Redirects are not followed: they come from proxies and sign-in pages, whose answer would be
    // taken for that of the service.
    let mut builder = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(Duration::from_secs(60))
        .redirect(reqwest::redirect::Policy::none());
    match &options.proxy {
        Some(proxy) => builder = builder.proxy(proxy.clone()),
        // A proxy from the environment would look for the emulator on its own machine.
        None if endpoint.loopback => builder = builder.no_proxy(),
        None => {}
    }
    for certificate in &options.root_certificates {
        builder = builder.add_root_certificate(certificate.clone());
    }
    builder.build().map_err(|error| {
        Error::new(ErrorKind::Backend, "the HTTP client cannot be set up").with_source(error)
    })
}

async fn send_pooled(
    client: &reqwest::Client,
    request: &Request,
    authorization: Authorization,
) -> Result<HttpAnswer, SendFailure> {
    let unsent = |error: BoxError| SendFailure::Unsent("the request cannot be built", error);
    let method = reqwest::Method::from_bytes(request.method().as_ref().as_bytes())
        .map_err(|error| unsent(error.into()))?;
    let mut url = request.url().clone();
    if let Authorization::Query(token) = &authorization {
        add_query(&mut url, token);
    }
    let mut sent = client.request(method, url);
    for (name, value) in request.headers().iter() {
        sent = sent.header(name.as_str(), value.as_str());
    }
    if let Authorization::Header(value) = authorization {
        sent = sent.header(reqwest::header::AUTHORIZATION, value);
    }
    if let Body::Bytes(body) = request.body() {
        sent = sent.body(body.clone());
    }
    // The error goes without its URL, which may contain a signature.
    let sent = sent.build().map_err(|error| unsent(error.without_url().into()))?;
    let answer = client.execute(sent).await.map_err(send_failure)?;
    let status = answer.status().as_u16();
    let headers: std::collections::HashMap<_, _> = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            // An odd header must not lose the answer to a write. The headers that are read are
            // ASCII.
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (HeaderName::from(name.as_str().to_owned()), value.into())
        })
        .collect();
    let body = stream::try_unfold(answer, |mut answer| async move {
        let chunk =
            answer.chunk().await.map_err(|error| SendFailure::Lost(error.without_url().into()))?;
        Ok(chunk.map(|chunk| (chunk, answer)))
    });
    Ok(HttpAnswer { status, headers: headers.into(), body: collect_body(body).await? })
}

/// Largest number of bytes of an answer. Answers of the service have a few MiB at most.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Collects the chunks of a body. Most bodies are one chunk, which is returned without a copy.
async fn collect_body(
    chunks: impl Stream<Item = Result<Bytes, SendFailure>>,
) -> Result<Bytes, SendFailure> {
    let mut chunks = std::pin::pin!(chunks);
    let Some(first) = chunks.try_next().await? else { return Ok(Bytes::new()) };
    let Some(mut next) = chunks.try_next().await? else { return Ok(first) };
    let mut body = BytesMut::from(first);
    loop {
        if body.len().saturating_add(next.len()) > ANSWER_BYTES {
            return Err(SendFailure::Lost(
                "the answer has more than 64 MiB, which no answer of the Table service has".into(),
            ));
        }
        body.extend_from_slice(&next);
        match chunks.try_next().await? {
            Some(more) => next = more,
            None => return Ok(body.freeze()),
        }
    }
}

fn send_failure(error: reqwest::Error) -> SendFailure {
    // The URL may contain a SAS.
    let error = error.without_url();
    // No byte of a request leaves before there is a connection, so that even a write can be
    // repeated.
    if error.is_connect() {
        SendFailure::Unsent("the service cannot be reached", error.into())
    } else {
        SendFailure::Lost(error.into())
    }
}

async fn send_authorized(
    client: &dyn HttpClient,
    request: &mut Request,
    authorization: Authorization,
) -> Result<HttpAnswer, SendFailure> {
    match authorization {
        Authorization::Header(value) => request.insert_header(headers::AUTHORIZATION, value),
        Authorization::Query(token) => add_query(request.url_mut(), &token),
    }
    // A client of the program does not say whether it has sent anything: each failure counts as a
    // lost answer.
    let lost = |error: azure_core::Error| SendFailure::Lost(error.into());
    let (status, headers, body) =
        client.execute_request(request).await.map_err(lost)?.deconstruct();
    Ok(HttpAnswer { status: status.into(), headers, body: collect_body(body.map_err(lost)).await? })
}

/// Replaces `+` in the query by `%20`. The client encodes a blank as `+`, which not every server takes
/// for a blank; a real `+` is encoded as `%2B` already.
fn encode_blanks(url: &mut azure_core::Url) {
    if let Some(query) = url.query().filter(|query| query.contains('+')) {
        let query = query.replace('+', "%20");
        url.set_query(Some(&query));
    }
}

fn add_query(url: &mut azure_core::Url, token: &str) {
    let query = match url.query() {
        Some(query) if !query.is_empty() => format!("{query}&{token}"),
        _ => token.to_owned(),
    };
    url.set_query(Some(&query));
}

/// The text of the error that the client gets in place of an answer.
const ANSWER_TAKEN: &str = "the answer was taken at the transport";

#[async_trait]
impl Policy for AuthorizingTransport {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        _next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if let Some(exchange) = context.get::<SharedHttpExchange>() {
            let outcome = Self::send(self, &exchange.0, request).await;
            exchange.0.set_outcome(outcome);
        }
        Err(azure_core::Error::message(azure_core::error::ErrorKind::Other, ANSWER_TAKEN))
    }
}
