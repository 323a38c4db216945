//! Accepts connections and answers their requests by HTTP/1.1, within bounds of size, time and number.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use entable::{AccountKey, Clock, SystemClock, Ticks, backend::Backend};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};
use uuid::Uuid;

use crate::{
    access::authorize,
    address::options_of,
    failure::Failure,
    request::{Answer, Request},
    service::Service,
};

/// The most bytes of a request's body.
const BODY_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of a request's line and headers.
const HEAD_BYTES: usize = 64 * 1024;
/// The most connections at one time. Further ones wait.
const CONNECTIONS: usize = 1024;
/// The most bodies of the largest size in memory at one time. Further requests are answered with 503.
const BODIES: usize = 64;
/// How long a client may take to send the headers of a request, and then its body.
const PATIENCE: Duration = Duration::from_secs(30);
/// The version of the protocol in answers to requests that name none.
const VERSION: &str = "2019-02-02";

/// A server of the protocol of Azure Table storage on one port of the loopback interface.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: Service,
}

impl Server {
    /// Opens a port for the rows of `backend`, served to those who sign with `key`. Port 0 takes a free one.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::{AccountKey, backend::Memory};
    /// use entable_server::Server;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let rows = Arc::new(Memory::new());
    /// let server = Server::bind("127.0.0.1:0", rows, AccountKey::emulator()).await?;
    /// assert!(server.address().port() != 0);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be opened, and with `InvalidInput` for an address that other machines can reach:
    /// the server has no TLS.
    pub async fn bind(
        listen: &str,
        backend: Arc<dyn Backend>,
        key: AccountKey,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let message = "the server listens on loopback addresses alone";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let base = format!("http://{address}/{}", key.account());
        Ok(Self {
            listener,
            address,
            service: Service { backend, key, base, clock: Arc::new(SystemClock) },
        })
    }

    /// Sets the clock that the dates of requests are compared with. The default is the clock of the system.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::{AccountKey, SteppedClock, Ticks, backend::Memory};
    /// use entable_server::Server;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let rows = Arc::new(Memory::new());
    /// let server = Server::bind("127.0.0.1:0", rows, AccountKey::emulator()).await?;
    /// let server = server.with_clock(Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
    /// assert!(server.endpoint().ends_with("/devstoreaccount1"));
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.service.clock = clock;
        self
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the account, which clients use as their endpoint.
    pub fn endpoint(&self) -> &str {
        &self.service.base
    }

    /// Answers requests until `stop` is ready, then finishes the requests that have begun.
    ///
    /// # Errors
    ///
    /// Fails if no connection can be accepted any more.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let service = Arc::new(self.service);
        let (stopping, stopped) = watch::channel(());
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let bodies = Arc::new(Semaphore::new(BODIES));
        tokio::pin!(stop);
        loop {
            // Nobody closes the semaphore, so this never fails.
            let Ok(slot) = slots.clone().acquire_owned().await else { break };
            let stream = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // The client has gone already, or this process has no handle left for the moment.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            let door =
                Door { service: service.clone(), address: self.address, bodies: bodies.clone() };
            let stopped = stopped.clone();
            tokio::spawn(async move {
                converse(door, stream, stopped).await;
                drop(slot);
            });
        }
        drop(stopping);
        // Every connection gives its slot back when its last request is answered.
        let _ = timeout(PATIENCE, slots.acquire_many(CONNECTIONS as u32 - 1)).await;
        Ok(())
    }
}

/// State shared by all requests of one connection.
#[derive(Debug, Clone)]
struct Door {
    service: Arc<Service>,
    address: SocketAddr,
    bodies: Arc<Semaphore>,
}

async fn converse(door: Door, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    // An answer of two segments would otherwise wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let serve = service_fn(move |request| {
        let door = door.clone();
        async move { io::Result::Ok(respond(&door, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), serve);
    tokio::pin!(connection);
    tokio::select! {
        // A client that breaks the protocol loses its connection, and nobody else's.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn respond(door: &Door, request: hyper::Request<Incoming>) -> Response<Full<Bytes>> {
    let now = door.service.clock.now();
    let id = Uuid::new_v4().to_string();
    let is_head = request.method() == hyper::Method::HEAD;
    let header = |name: &str| request.headers().get(name)?.to_str().ok().map(str::to_owned);
    let version = header("x-ms-version").unwrap_or_else(|| VERSION.to_owned());
    let client_id = header("x-ms-client-request-id");
    let mut answer = match handle(door, request, now).await {
        Ok(answer) => answer,
        Err(failure) => failed(&failure, &id, now),
    };
    answer = answer.with("x-ms-request-id", id).with("x-ms-version", version);
    if let Some(client_id) = client_id {
        answer = answer.with("x-ms-client-request-id", client_id);
    }
    into_response(answer, is_head)
}

fn failed(failure: &Failure, id: &str, now: Ticks) -> Answer {
    let answer = failure.answer(None, id, now);
    // Errors of data have their code in the body alone.
    if matches!(failure.status, 401 | 403) {
        return answer.with("x-ms-error-code", failure.code.clone());
    }
    answer
}

fn into_response(answer: Answer, is_head: bool) -> Response<Full<Bytes>> {
    let mut response = Response::builder()
        .status(answer.status)
        .header("Cache-Control", "no-cache")
        .header("X-Content-Type-Options", "nosniff");
    for (name, value) in &answer.headers {
        response = response.header(*name, value.as_str());
    }
    let body = if is_head { Bytes::new() } else { Bytes::from(answer.body) };
    // Headers are ASCII that was checked where it came from; else the answer would be a plain 500.
    response.body(Full::new(body)).unwrap_or_else(|_| {
        let mut response = Response::new(Full::new(Bytes::new()));
        *response.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}

async fn handle(
    door: &Door,
    request: hyper::Request<Incoming>,
    now: Ticks,
) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let mut headers = Vec::new();
    for (name, value) in &head.headers {
        let value = value.to_str().map_err(|_| Failure::new(400, "InvalidHeaderValue"))?;
        headers.push((name.as_str().to_owned(), value.to_owned()));
    }
    let mut request = Request {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        options: options_of(head.uri.query().unwrap_or(""))?,
        headers,
        body: Bytes::new(),
    };
    check_origin(&request, door.address)?;
    authorize(&door.service.key, &request, now)?;
    if request.header("content-encoding").is_some() {
        return Err(Failure::new(415, "MediaTypeNotSupported"));
    }
    let room = door.bodies.try_acquire().map_err(|_| Failure::new(503, "ServerBusy"))?;
    request.body = read_body(&request, body).await?;
    let answer = door.service.answer(&request).await;
    drop(room);
    answer
}

async fn read_body(request: &Request, body: Incoming) -> Result<Bytes, Failure> {
    let too_large = || Failure::new(413, "RequestBodyTooLarge");
    let declared = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    if declared.is_some_and(|length| length > BODY_BYTES as u64) {
        return Err(too_large());
    }
    match timeout(PATIENCE, Limited::new(body, BODY_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Failure::new(400, "InvalidInput")),
        Err(_) => Err(Failure::new(500, "OperationTimedOut")),
    }
}

/// Refuses what a page in a browser could send: the emulator's key is public, so a signature alone does not keep
/// pages out. A page that rebinds a name of its own to this machine sends that name as `Host`.
fn check_origin(request: &Request, address: SocketAddr) -> Result<(), Failure> {
    let host = request.header("host").unwrap_or("");
    let is_local = host == address.to_string() || host == format!("localhost:{}", address.port());
    if is_local && request.header("origin").is_none() {
        return Ok(());
    }
    Err(Failure::new(403, "AuthorizationFailure"))
}
