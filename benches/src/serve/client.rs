//! A client that takes little time itself: signed requests over connections that stay open.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use entable::{AccountKey, Clock, SystemClock};
use entable_azure::wire::http_date_text;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The operations of a transaction.
const TRANSACTION: usize = 100;
/// The rows that are read and replaced.
const ROWS: usize = 1_000;
const ENTITY: &str =
    r#""FirstName":"Don","LastName":"Hall","Age":34,"Email":"donh@contoso.com","Salary":55000.5"#;

/// A load on one server.
#[derive(Clone)]
pub(super) struct Load {
    endpoint: String,
    /// Numbers the requests.
    next: Arc<AtomicUsize>,
}

/// The figures of a load.
pub(super) struct Outcome {
    /// Requests a second.
    pub(super) rate: f64,
    /// The milliseconds in which 99 of 100 requests were answered.
    pub(super) slowest: f64,
}

/// The parts of a request that differ.
pub(super) struct Sent {
    method: &'static str,
    target: String,
    content_type: &'static str,
    body: String,
}

impl Load {
    /// Fills a new table.
    pub(super) async fn new(endpoint: String) -> Self {
        let load = Self { endpoint, next: Arc::default() };
        let mut client = Client::connect(&load.endpoint).await;
        client.send(&json("POST", "Tables", r#"{"TableName":"Staff"}"#.to_owned())).await;
        for number in 0..ROWS {
            client.send(&Self::replace(number)).await;
        }
        load
    }

    pub(super) fn insert(number: usize) -> Sent {
        let keys = format!(r#"{{"PartitionKey":"i{}","RowKey":"{number:08}""#, number % 16);
        json("POST", "Staff", format!("{keys},{ENTITY}}}"))
    }

    pub(super) fn read(number: usize) -> Sent {
        json("GET", &row(number % ROWS), String::new())
    }

    pub(super) fn replace(number: usize) -> Sent {
        json("PUT", &row(number % ROWS), format!(r#"{{{ENTITY},"Number":{number}}}"#))
    }

    pub(super) fn transaction(number: usize) -> Sent {
        // Azurite finds the parts by these beginnings of their boundaries.
        let mut body =
            "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n".to_owned();
        for at in 0..TRANSACTION {
            body += &format!(
                "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://127.0.0.1/devstoreaccount1/Staff HTTP/1.1\r\nContent-Type: application/json\r\n\
                 Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\nDataServiceVersion: 3.0;\r\n\r\n\
                 {{\"PartitionKey\":\"t{number:08}\",\"RowKey\":\"{at:03}\",{ENTITY}}}\r\n"
            );
        }
        body += "--changeset_c--\r\n--batch_b--\r\n";
        let content_type = "multipart/mixed; boundary=batch_b";
        Sent { method: "POST", target: "$batch".to_owned(), content_type, body }
    }

    /// Sends requests from that many clients for a while.
    pub(super) async fn run(
        &self,
        clients: usize,
        time: Duration,
        request: fn(usize) -> Sent,
    ) -> Outcome {
        let began = Instant::now();
        let times = self.send_while(clients, request, move |_| began.elapsed() < time).await;
        outcome(times, began.elapsed())
    }

    /// Sends that many requests.
    pub(super) async fn repeat(&self, clients: usize, requests: usize, request: fn(usize) -> Sent) {
        let last = self.next.load(Ordering::Relaxed) + requests;
        self.send_while(clients, request, move |number| number < last).await;
    }

    async fn send_while(
        &self,
        clients: usize,
        request: fn(usize) -> Sent,
        goes_on: impl Fn(usize) -> bool + Copy + Send + 'static,
    ) -> Vec<Duration> {
        let clients = (0..clients).map(|_| {
            let load = self.clone();
            tokio::spawn(async move {
                let (mut client, mut times) = (Client::connect(&load.endpoint).await, Vec::new());
                loop {
                    let number = load.next.fetch_add(1, Ordering::Relaxed);
                    if !goes_on(number) {
                        return times;
                    }
                    let began = Instant::now();
                    client.send(&request(number)).await;
                    times.push(began.elapsed());
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        let mut all = Vec::new();
        for client in clients {
            all.append(&mut client.await.unwrap());
        }
        all
    }
}

fn row(number: usize) -> String {
    format!("Staff(PartitionKey='p{}',RowKey='{number}')", number % 16)
}

fn json(method: &'static str, target: &str, body: String) -> Sent {
    Sent { method, target: target.to_owned(), content_type: "application/json", body }
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn outcome(mut times: Vec<Duration>, took: Duration) -> Outcome {
    times.sort_unstable();
    let slowest = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    Outcome { rate: times.len() as f64 / took.as_secs_f64(), slowest: slowest.as_secs_f64() * 1e3 }
}

/// One connection.
struct Client {
    stream: TcpStream,
    host: String,
    key: AccountKey,
    answer: Vec<u8>,
}

impl Client {
    async fn connect(endpoint: &str) -> Self {
        let stream = TcpStream::connect(endpoint).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let key = AccountKey::emulator();
        Self { stream, host: endpoint.to_owned(), key, answer: Vec::new() }
    }

    /// Sends a request and waits for its answer, which must be a success.
    async fn send(&mut self, sent: &Sent) {
        let Sent { method, target, content_type, body } = sent;
        let (host, length) = (&self.host, body.len());
        let date = http_date_text(SystemClock.now());
        let text = format!("{date}\n/devstoreaccount1/devstoreaccount1/{target}");
        let signature = self.key.sign_text(&text);
        let request = format!(
            "{method} /devstoreaccount1/{target} HTTP/1.1\r\nHost: {host}\r\nx-ms-date: {date}\r\nx-ms-version: 2019-02-02\r\n\
             Accept: application/json;odata=minimalmetadata\r\nContent-Type: {content_type}\r\nDataServiceVersion: 3.0\r\n\
             Prefer: return-no-content\r\nAuthorization: SharedKeyLite devstoreaccount1:{signature}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer.clear();
        while !is_whole(&self.answer) {
            let read = self.stream.read_buf(&mut self.answer).await.unwrap();
            assert!(read > 0, "{method} {target}: the connection ended");
        }
        let is_done = self.answer.starts_with(b"HTTP/1.1 2");
        assert!(is_done, "{method} {target}: {}", String::from_utf8_lossy(&self.answer));
        let has_failed_part = target == "$batch" && contains(&self.answer, b"\r\nHTTP/1.1 4");
        assert!(!has_failed_part, "{}", String::from_utf8_lossy(&self.answer));
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns whether an answer has come with all of its body.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let (head, body) = answer.split_at(end + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if head.starts_with("http/1.1 204") {
        return true;
    }
    match head.split_once("content-length: ") {
        Some((_, rest)) => {
            let length = rest.split("\r\n").next().unwrap_or("").parse::<usize>();
            length.is_ok_and(|length| body.len() >= length)
        }
        None => body.ends_with(b"0\r\n\r\n"),
    }
}
