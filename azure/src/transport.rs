//! Defines [`Transport`], the port to an HTTP client, with the requests and answers that pass through it.

use std::{borrow::Cow, fmt};

use bytes::{Bytes, BytesMut};
use entable_core::{
    backend::BoxFuture,
    error::{BoxError, Result},
};

/// An HTTP client that carries the requests of an [`Azure`](crate::Azure) backend.
///
/// The backend encodes and signs each request, limits its time, and decodes the answer. A transport sends
/// the bytes:
///
/// * It sends each request once. It never repeats a request, since an insert that succeeded would then
///   fail with `Conflict`, and never follows a redirect, since the signature would go along.
/// * It checks the certificates of the service.
/// * It returns answers of every status, with the body as it was sent: neither decompressed nor changed.
///   [`AnswerBody`] limits the size of a body.
/// * It returns [`SendFailure::NotSent`] only if no byte of the request has left. Such a write is
///   repeated without asking the service for its outcome.
/// * It writes neither URLs nor headers to a log, and quotes no URL in errors: a shared access signature
///   (SAS) is part of the URL.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use entable_azure::{Azure, AzureOptions, HttpAnswer, HttpRequest, SendFailure, Transport};
/// use entable_core::{BoxError, Error, backend::{Backend, BoxFuture, TableRequest}};
///
/// /// Counts the requests and lets them fail.
/// #[derive(Debug, Default)]
/// struct Offline(AtomicU32);
///
/// impl Transport for Offline {
///     fn send<'a>(&'a self, _: &'a HttpRequest) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Box::pin(async { Err(SendFailure::NotSent("offline".into())) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let transport = Arc::new(Offline::default());
/// let options = AzureOptions::emulator().transport(transport.clone());
/// let azure = Azure::new(options)?;
/// assert!(azure.tables(TableRequest::Create("Staff")).await.is_err());
/// assert_eq!(transport.0.load(Ordering::Relaxed), 1);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), BoxError>(())
/// ```
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends a request and returns the answer, whatever its status is. The future may be dropped at any
    /// time, which ends the request.
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>>;
}

/// A signed request that is ready to be sent.
///
/// `Debug` shows neither the query of the URL, nor headers, nor the body.
#[derive(Clone)]
pub struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, Cow<'static, str>)>,
    pub(crate) body: Bytes,
    #[cfg(feature = "azure-data-tables")]
    pub(crate) resource: Resource,
}

/// The kind of what a request addresses.
#[cfg(feature = "azure-data-tables")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Tables,
    Table,
    Rows,
    Row,
    Batch,
    Path,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `MERGE`, which the service takes for `PATCH`.
    Merge,
    /// `DELETE`.
    Delete,
}

impl Method {
    /// Returns the method as it is sent.
    ///
    /// ```
    /// assert_eq!(entable_azure::Method::Merge.as_str(), "MERGE");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Merge => "MERGE",
            Self::Delete => "DELETE",
        }
    }
}

impl HttpRequest {
    /// Returns the method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the whole URL, percent-encoded. Its query is a secret if the credential is a SAS.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the headers with names in lower case, each name once. `authorization` is a secret.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, &**value))
    }

    /// Returns the value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Sets another URL, for a transport around another one. The signature of an account key covers the
    /// path.
    #[must_use]
    pub fn with_url(self, url: impl Into<String>) -> Self {
        Self { url: url.into(), ..self }
    }

    /// Returns the body, which is empty if the request has none.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("address", &address)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}

/// An answer of any status.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl HttpAnswer {
    /// The headers of an answer that the backend reads, in lower case. A transport may leave out all others.
    pub const HEADERS: [&'static str; 10] = [
        "date",
        "etag",
        "retry-after",
        "retry-after-ms",
        "x-ms-continuation-nextpartitionkey",
        "x-ms-continuation-nextrowkey",
        "x-ms-continuation-nexttablename",
        "x-ms-error-code",
        "x-ms-popreceipt",
        "x-ms-retry-after-ms",
    ];

    /// Makes an answer without headers and without a body.
    ///
    /// ```
    /// use entable_azure::HttpAnswer;
    ///
    /// let answer = HttpAnswer::new(404).with_header("X-Ms-Error-Code", "ResourceNotFound");
    /// assert_eq!((answer.status(), answer.header("x-ms-error-code")), (404, Some("ResourceNotFound")));
    /// ```
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header, in place of an earlier one of that name. The case of the name does not count. Headers
    /// that the backend does not read are left out.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        let known = Self::HEADERS.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        if let Some(known) = known {
            self.headers.retain(|(name, _)| *name != known);
            self.headers.push((known, value.into()));
        }
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the value of a header that the backend reads; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The reason why a request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendFailure {
    /// No byte of the request has left.
    NotSent(BoxError),
    /// The request has left, at least in part, and the answer is lost: the service may have carried the
    /// request out.
    Lost(BoxError),
}

/// The largest number of bytes of an answer. Answers of the service have a few MiB at most.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Collects the chunks of an answer's body, up to 64 MiB.
///
/// ```
/// use entable_azure::AnswerBody;
///
/// let mut body = AnswerBody::default();
/// body.push("{\"value\":".into())?;
/// body.push("[]}".into())?;
/// assert_eq!(body.finish(), "{\"value\":[]}");
/// # Ok::<(), entable_azure::SendFailure>(())
/// ```
#[derive(Debug, Default)]
pub struct AnswerBody {
    /// Most bodies are one chunk, which is returned without a copy.
    first: Bytes,
    all: Option<BytesMut>,
}

impl AnswerBody {
    /// Adds a chunk.
    ///
    /// # Errors
    ///
    /// [`SendFailure::Lost`] if the body exceeds 64 MiB.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), SendFailure> {
        let length = self.all.as_ref().map_or(self.first.len(), BytesMut::len);
        if length.saturating_add(chunk.len()) > ANSWER_BYTES {
            let message = "the answer exceeds 64 MiB, more than the service ever sends; check the endpoint and \
                           proxies";
            return Err(SendFailure::Lost(message.into()));
        }
        if length == 0 {
            self.first = chunk;
        } else if !chunk.is_empty() {
            let first = &self.first;
            self.all.get_or_insert_with(|| BytesMut::from(&**first)).extend_from_slice(&chunk);
        }
        Ok(())
    }

    /// Returns the whole body.
    pub fn finish(self) -> Bytes {
        self.all.map_or(self.first, BytesMut::freeze)
    }
}
