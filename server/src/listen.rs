//! Accepts connections and answers their requests by HTTP/1.1, within bounds of size, time and number.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use entable_azure::EMULATOR_KEY;
use entable_core::{Ticks, backend::Backend};
use http_body_util::{BodyExt, Full};
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
    budget::Room,
    builder::{ServerBuilder, is_well_known},
    failure::Failure,
    host::Hosts,
    request::{Answer, Request},
    routes,
    service::Service,
    stalled::Stalling,
};

/// The most bytes of a request's body.
const BODY_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of a request's line and headers.
const HEAD_BYTES: usize = 64 * 1024;
/// The most connections at one time. Further ones wait.
const CONNECTIONS: u32 = 1024;
/// How many bytes of memory a byte of a request's body takes: the body, the rows that are read from it, and the answer.
const BYTES_PER_BYTE: usize = 3;
/// How long a client may take to send the headers of a request, and then its body.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first version of the protocol with JSON.
const FIRST_VERSION: &str = "2013-08-15";
/// A year in ticks.
const YEAR: i64 = 366 * 24 * 60 * 60 * 10_000_000;
/// How long a stopped server waits for clients to send the rest of a request's headers.
const GRACE: Duration = Duration::from_secs(1);
/// How many clones of `busy` a connection without a request has: the door's and one to count with.
const IDLE: usize = 2;
/// The version of the protocol in answers to requests that name none.
const VERSION: &str = "2019-02-02";

/// A server of the protocol of Azure Table storage on one port.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    endpoint: String,
    service: Service,
    hosts: Hosts,
}

impl Server {
    /// Describes a server for the rows of `backend`. By default, it listens on the loopback address of the storage
    /// emulator and takes the emulator's account and key.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::{AccountKey, SteppedClock, Ticks, backend::Memory};
    /// use entable_server::Server;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let server = Server::builder(Arc::new(Memory::new()))
    ///     .address("127.0.0.1:0")
    ///     .key(AccountKey::new("mine", "AAECAwQ=").unwrap())
    ///     .clock(Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)))
    ///     .bind()
    ///     .await?;
    /// assert_eq!(server.endpoint(), format!("http://{}/mine", server.address()));
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn builder(backend: Arc<dyn Backend>) -> ServerBuilder {
        ServerBuilder::new(backend)
    }

    pub(crate) fn new(listener: TcpListener, service: Service, hosts: Hosts) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let endpoint = format!("http://{address}/{}", service.key.account());
        Ok(Self { listener, address, endpoint, service, hosts })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the account, which clients use as their endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the connection string of clients. In place of a key of your own, it contains `<your key>`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use entable::{AzureOptions, backend::Memory};
    /// use entable_server::Server;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let server = Server::builder(Arc::new(Memory::new())).address("127.0.0.1:0").bind().await?;
    /// assert!(AzureOptions::from_connection_string(&server.connection_string()).is_ok());
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn connection_string(&self) -> String {
        let (key, endpoint) = (&self.service.key, &self.endpoint);
        let shown = if is_well_known(key) { EMULATOR_KEY } else { "<your key>" };
        let account = key.account();
        format!(
            "DefaultEndpointsProtocol=http;AccountName={account};AccountKey={shown};TableEndpoint={endpoint};"
        )
    }

    /// Answers requests until `stop` is ready, then finishes the requests that have begun.
    ///
    /// # Errors
    ///
    /// Fails if no connection can be accepted any more.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let (service, hosts) = (Arc::new(self.service), Arc::new(self.hosts));
        let (stopping, stopped) = watch::channel(());
        let slots = Arc::new(Semaphore::new(CONNECTIONS as usize));
        tokio::pin!(stop);
        loop {
            let slot = tokio::select! {
                () = &mut stop => break,
                slot = slots.clone().acquire_owned() => slot,
            };
            // Nobody closes the semaphore, so this never fails.
            let Ok(slot) = slot else { break };
            let (stream, client) = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // The client has gone already, or this process has no handle left for the moment.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            let door = Door {
                service: service.clone(),
                hosts: hosts.clone(),
                client: client.ip(),
                busy: Arc::default(),
            };
            let stopped = stopped.clone();
            tokio::spawn(async move {
                converse(door, stream, stopped).await;
                drop(slot);
            });
        }
        drop(stopping);
        // Every connection gives its slot back when its last request is answered.
        let _ = timeout(PATIENCE, slots.acquire_many(CONNECTIONS)).await;
        Ok(())
    }
}

/// State shared by all requests of one connection.
#[derive(Debug, Clone)]
struct Door {
    service: Arc<Service>,
    hosts: Arc<Hosts>,
    client: IpAddr,
    /// Cloned by each request, until its answer is sent.
    busy: Arc<()>,
}

async fn converse(door: Door, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    // An answer of two segments would otherwise wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let busy = door.busy.clone();
    let serve = service_fn(move |request| {
        let door = door.clone();
        async move { io::Result::Ok(respond(&door, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Stalling::new(stream, PATIENCE)), serve);
    tokio::pin!(connection);
    tokio::select! {
        // A client that breaks the protocol loses its connection, and nobody else's.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    // A client may have sent a part of a request, and may never send the rest.
    while timeout(GRACE, connection.as_mut()).await.is_err() {
        if Arc::strong_count(&busy) <= IDLE {
            break;
        }
    }
}

async fn respond(door: &Door, request: hyper::Request<Incoming>) -> Response<Full<Bytes>> {
    let now = door.service.clock.now();
    let id = Uuid::new_v4().to_string();
    let is_head = request.method() == hyper::Method::HEAD;
    let header = |name: &str| request.headers().get(name)?.to_str().ok().map(str::to_owned);
    let version = header("x-ms-version").filter(|version| is_version(version, now));
    let version = version.unwrap_or_else(|| VERSION.to_owned());
    let client_id = header("x-ms-client-request-id");
    let mut answer = match handle(door, request, now).await {
        Ok(answer) => answer,
        Err(failure) => failed(&failure, &id, now),
    };
    answer = answer.with("x-ms-request-id", id).with("x-ms-version", version);
    if let Some(client_id) = client_id {
        answer = answer.with("x-ms-client-request-id", client_id);
    }
    into_response(answer, is_head, door.busy.clone())
}

fn failed(failure: &Failure, id: &str, now: Ticks) -> Answer {
    let answer = failure.answer(None, id, now);
    // Errors of data have their code in the body alone.
    if matches!(failure.status, 401 | 403) {
        return answer.with("x-ms-error-code", failure.code.clone());
    }
    answer
}

fn into_response(answer: Answer, is_head: bool, busy: Arc<()>) -> Response<Full<Bytes>> {
    let mut response = Response::builder()
        .status(answer.status)
        .header("Cache-Control", "no-cache")
        .header("X-Content-Type-Options", "nosniff");
    for (name, value) in &answer.headers {
        response = response.header(*name, value.as_str());
    }
    let body = SentBody { bytes: answer.body, _room: answer.room, _busy: busy };
    let body = if is_head { Bytes::new() } else { Bytes::from_owner(body) };
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
        base: String::new(),
        headers,
        body: Bytes::new(),
        grant: Arc::default(),
    };
    let host = request.header("host").unwrap_or("");
    request.base = format!("http://{host}/{}", door.service.key.account());
    door.hosts.check(&request)?;
    check_version(&request, now)?;
    request.grant = authorize(&door.service, &request, door.client, now).await?.into();
    if request.header("content-encoding").is_some() {
        return Err(Failure::new(415, "MediaTypeNotSupported"));
    }
    let mut room = door.service.budget.room();
    let reading = read_body(&request, body, &mut room);
    let late = |_| Failure::new(500, "OperationTimedOut");
    request.body = timeout(PATIENCE, reading).await.map_err(late)??;
    let answer = routes::answer(&door.service, &request).await?;
    // An answer that has no room of its own is about as long as the request.
    Ok(Answer { room: answer.room.or(Some(room)), ..answer })
}

fn check_version(request: &Request, now: Ticks) -> Result<(), Failure> {
    match request.header("x-ms-version") {
        Some(version) if !is_version(version, now) => Err(Failure::new(400, "InvalidHeaderValue")),
        _ => Ok(()),
    }
}

/// Returns whether a version is known. A version is the date of a release. SDKs send newer ones than this server was
/// made for, and their tables are the same, so every date counts up to a year from now.
fn is_version(version: &str, now: Ticks) -> bool {
    let limit = now.get().saturating_add(YEAR);
    let is_early = version.parse::<Ticks>().is_ok_and(|date| date.get() <= limit);
    version.len() == FIRST_VERSION.len() && version >= FIRST_VERSION && is_early
}

async fn read_body(
    request: &Request,
    mut body: Incoming,
    room: &mut Room,
) -> Result<Bytes, Failure> {
    let too_large = || Failure::new(413, "RequestBodyTooLarge");
    let declared = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    if declared.is_some_and(|length| length > BODY_BYTES as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // Memory is taken as bytes come, so a client that declares much and sends little keeps nobody out.
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failure::new(400, "InvalidInput"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES {
            return Err(too_large());
        }
        room.grow(data.len().saturating_mul(BYTES_PER_BYTE))?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.into())
}

/// The body of an answer, with the memory that it takes until it is sent.
struct SentBody {
    bytes: Vec<u8>,
    _room: Option<Room>,
    _busy: Arc<()>,
}

impl AsRef<[u8]> for SentBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
