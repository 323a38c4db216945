//! The last policy of the client's pipeline: sends the HTTP request over the network, and stores the answer.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use azure_core_021::{Context, Policy, PolicyResult, Request, error::ErrorKind};
use entable_core::error::{self, Error};
use reqwest_012::{Certificate, Client, Method, Proxy, header::HeaderValue, redirect};

use crate::{
    endpoint::Endpoint,
    http_settings::{HttpSettings, IDLE_TIMEOUT},
    transport::{AnswerBody, HttpAnswer, HttpRequest, SendFailure},
};

/// An HTTP request and the answer to it. The context of the pipeline carries it to the [`Policy`] that sends it.
pub(super) struct Exchange {
    request: reqwest_012::Request,
    answer: Mutex<Option<Result<HttpAnswer, SendFailure>>>,
}

impl Exchange {
    /// Prepares a request for the pipeline.
    pub(super) fn new(request: &HttpRequest) -> Result<Arc<Self>, SendFailure> {
        let not_sent = |error: error::BoxError| SendFailure::NotSent(error);
        let method = Method::from_bytes(request.method().as_str().as_bytes());
        let method = method.map_err(|error| not_sent(error.into()))?;
        let url = reqwest_012::Url::parse(request.url()).map_err(|error| not_sent(error.into()))?;
        let mut built = reqwest_012::Request::new(method, url);
        for (name, value) in request.headers() {
            let mut header =
                HeaderValue::from_str(value).map_err(|error| not_sent(error.into()))?;
            header.set_sensitive(name == "authorization");
            built.headers_mut().insert(name, header);
        }
        if !request.body().is_empty() {
            *built.body_mut() = Some(request.body().clone().into());
        }
        Ok(Arc::new(Self { request: built, answer: Mutex::default() }))
    }

    /// Takes the answer, or the reason why there is none. Returns `None` if the request never reached the
    /// last policy.
    pub(super) fn take_answer(&self) -> Option<Result<HttpAnswer, SendFailure>> {
        // A poisoned lock is used on: one value is replaced, which cannot stop half way.
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The last policy of the pipeline.
pub(super) struct Sender(Client);

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings of the client may hold the password of a proxy.
        f.write_str("Sender")
    }
}

impl Sender {
    /// Opens a pool of connections. The client's own opens a connection for each request and waits for
    /// ever.
    pub(super) fn open(settings: &HttpSettings, endpoint: &Endpoint) -> error::Result<Self> {
        let invalid = |message: &str| Error::new(error::ErrorKind::Invalid, message);
        let mut builder = Client::builder()
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http1_only()
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        match &settings.proxy {
            Some(proxy) => {
                let proxy = Proxy::all(proxy.as_str());
                builder = builder
                    .proxy(proxy.map_err(|_| invalid("the address of the proxy is not valid"))?);
            }
            // A proxy from the environment would look for the emulator on its own machine.
            None if endpoint.loopback => builder = builder.no_proxy(),
            None => {}
        }
        for certificate in &settings.root_certificates {
            let certificate = Certificate::from_der(certificate);
            builder = builder.add_root_certificate(
                certificate
                    .map_err(|_| invalid("a root certificate is not a valid X.509 certificate"))?,
            );
        }
        builder.build().map(Self).map_err(|error| {
            invalid("TLS cannot be set up; check the root certificates").with_source(error)
        })
    }

    async fn exchange(&self, request: reqwest_012::Request) -> Result<HttpAnswer, SendFailure> {
        let mut answer = self.0.execute(request).await.map_err(|error| {
            // Without a connection, no byte of the request was sent, so even a write can be repeated. The URL may
            // contain a SAS.
            if error.is_connect() {
                SendFailure::NotSent(error.without_url().into())
            } else {
                SendFailure::Lost(error.without_url().into())
            }
        })?;
        let mut found = HttpAnswer::new(answer.status().as_u16());
        for (name, value) in answer.headers() {
            // An odd header must not lose the answer to a write. The headers that are read are ASCII.
            found = found.with_header(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        }
        let mut body = AnswerBody::default();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) => body.push(chunk)?,
                Ok(None) => return Ok(found.with_body(body.finish())),
                Err(error) => return Err(SendFailure::Lost(error.without_url().into())),
            }
        }
    }
}

/// The text of the error that the client gets in place of an answer.
const ANSWER_TAKEN: &str = "the answer was taken at the transport";

#[async_trait]
impl Policy for Sender {
    async fn send(
        &self,
        context: &Context,
        _request: &mut Request,
        _next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let exchange = context.get::<Arc<Exchange>>();
        if let Some((exchange, request)) =
            exchange.and_then(|one| Some((one, one.request.try_clone()?)))
        {
            let answer = self.exchange(request).await;
            *exchange.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
        Err(azure_core_021::Error::message(ErrorKind::Other, ANSWER_TAKEN))
    }
}
