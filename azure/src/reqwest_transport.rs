//! The transport over `reqwest`: HTTP/1.1, rustls with the system's certificates, no redirects, no
//! decompression.

use std::{fmt, sync::Arc};

use entable_core::{
    backend::BoxFuture,
    error::{BoxError, Error, ErrorKind, Result},
};
use reqwest::{
    Body, Certificate, Client, Proxy, Request, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};

use crate::{
    endpoint::Endpoint,
    http_settings::{HttpSettings, IDLE_TIMEOUT},
    transport::{AnswerBody, HttpAnswer, HttpRequest, Method, SendFailure, Transport},
};

struct ReqwestTransport(Client);

/// Opens a pool of connections to an endpoint.
pub(crate) fn open(settings: &HttpSettings, endpoint: &Endpoint) -> Result<Arc<dyn Transport>> {
    let invalid = |message: &str| Error::new(ErrorKind::Invalid, message);
    let certificates = settings.root_certificates.iter().map(|der| Certificate::from_der(der));
    let certificates: Result<Vec<Certificate>, _> = certificates.collect();
    let certificates =
        certificates.map_err(|_| invalid("a root certificate is not a valid X.509 certificate"))?;
    // Redirects come from proxies and sign-in pages, whose answer would be taken for the service's. Other
    // crates of the program may turn on decompression and HTTP/2, which are of no use here.
    let builder = Client::builder()
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http1_only()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    // An emulator over http needs no certificates, and the machine may have none.
    let builder = if endpoint.is_https() || settings.proxy.is_some() {
        builder.tls_certs_merge(certificates)
    } else {
        builder.tls_certs_only(certificates)
    };
    let builder = match &settings.proxy {
        Some(proxy) => {
            let proxy = Proxy::all(proxy.as_str());
            builder.proxy(proxy.map_err(|_| invalid("the address of the proxy is not valid"))?)
        }
        // A proxy from the environment would look for the emulator on its own machine.
        None if endpoint.loopback => builder.no_proxy(),
        None => builder,
    };
    let client = builder.build().map_err(|error| {
        invalid("TLS cannot be set up; check the root certificates, and install the system's")
            .with_source(error)
    })?;
    Ok(Arc::new(ReqwestTransport(client)))
}

impl Transport for ReqwestTransport {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        Box::pin(self.exchange(request))
    }
}

impl ReqwestTransport {
    async fn exchange(&self, request: &HttpRequest) -> Result<HttpAnswer, SendFailure> {
        let request = to_reqwest(request).map_err(SendFailure::NotSent)?;
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

impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings of the client may hold the password of a proxy.
        f.write_str("Reqwest")
    }
}

fn to_reqwest(request: &HttpRequest) -> Result<Request, BoxError> {
    let method = match request.method() {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Delete => reqwest::Method::DELETE,
        other => reqwest::Method::from_bytes(other.as_str().as_bytes())?,
    };
    // The error of a URL does not quote it.
    let mut built = Request::new(method, Url::parse(request.url())?);
    let mut headers = HeaderMap::with_capacity(12);
    for (name, value) in request.headers() {
        let mut header = HeaderValue::from_str(value)?;
        header.set_sensitive(name == "authorization");
        headers.insert(HeaderName::from_static(name), header);
    }
    *built.headers_mut() = headers;
    if !request.body().is_empty() {
        *built.body_mut() = Some(Body::from(request.body().clone()));
    }
    Ok(built)
}
