//! The memory of a server while many clients send it the largest batches at one time.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{fmt::Write, sync::Arc, thread};

use allocation_counter::measure;
use entable::{
    AccountKey, Clock, Filter, SystemClock,
    backend::{Backend, Memory, ScanRequest, TableRequest},
};
use entable_azure::wire::http_date_text;
use entable_server::Server;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Barrier, oneshot},
};

const MIB: u64 = 1024 * 1024;
/// The memory of the server, which is the least that it takes.
const BUDGET: u64 = 64 * MIB;
const CLIENTS: usize = 64;
/// The operations of a batch, and the characters of each of their two properties.
const ROWS: usize = 100;
const CHARACTERS: usize = 20_000;

/// A server that is measured, in a thread of its own.
struct Measured {
    address: String,
    stop: oneshot::Sender<()>,
    /// Ends with the most bytes that the server had allocated at one time.
    thread: thread::JoinHandle<u64>,
}

impl Measured {
    fn start(rows: Arc<Memory>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        let serve = async move {
            let server = Server::builder(rows).memory(0).address("127.0.0.1:0");
            let server = server.bind().await.unwrap();
            say.send(server.address().to_string()).unwrap();
            server.run(async { drop(stopped.await) }).await.unwrap();
        };
        let thread = thread::spawn(move || {
            // One thread, so that every allocation of the server is counted.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            measure(|| runtime.unwrap().block_on(serve)).bytes_max
        });
        Self { address: said.recv().unwrap(), stop, thread }
    }

    fn stop(self) -> u64 {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Returns a signed request.
fn request(address: &str, method: &str, target: &str, headers: &str, body: &str) -> String {
    let date = http_date_text(SystemClock.now());
    let path = target.split('?').next().unwrap();
    let text = format!("{date}\n/devstoreaccount1/devstoreaccount1/{path}");
    let signature = AccountKey::emulator().sign_text(&text);
    let length = body.len();
    format!(
        "{method} /devstoreaccount1/{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nx-ms-date: {date}\r\n\
         Accept: application/json\r\nAuthorization: SharedKeyLite devstoreaccount1:{signature}\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Returns a request that inserts the rows of one partition. It has nearly the most bytes of a body.
fn batch(address: &str, partition: usize) -> String {
    let filler = "x".repeat(CHARACTERS);
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for row in 0..ROWS {
        write!(
            body,
            "--c\r\nContent-Type: application/http\r\n\r\nPOST http://{address}/devstoreaccount1/Staff HTTP/1.1\r\n\
             Accept: application/json;odata=fullmetadata\r\n\r\n\
             {{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"A\":\"{filler}\",\"B\":\"{filler}\"}}\r\n"
        )
        .unwrap();
    }
    body += "--c--\r\n--b--\r\n";
    assert!((3 * MIB..=4 * MIB).contains(&(body.len() as u64)));
    let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
    request(address, "POST", "$batch", headers, &body)
}

/// Sends all but the last byte, waits until all clients have come this far, sends the rest, and returns the status.
async fn send_together(address: String, request: String, together: Arc<Barrier>) -> String {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let (most, last) = request.as_bytes().split_at(request.len() - 1);
    // The server may refuse the request before it has read it.
    let _ = stream.write_all(most).await;
    together.wait().await;
    let _ = stream.write_all(last).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).chars().skip(9).take(3).collect()
}

async fn count(rows: &Memory, partition: usize) -> usize {
    let filter = Filter::parse(&format!("PartitionKey eq '{partition}'")).unwrap();
    let select = ["RowKey".to_owned()];
    let scan = ScanRequest {
        table: "Staff",
        filter: &filter,
        select: Some(&select),
        top: None,
        from: None,
    };
    rows.scan(scan).await.unwrap().into_rows().unwrap().len()
}

#[tokio::test]
async fn the_largest_batches_of_many_clients_stay_within_the_memory_and_none_is_half_applied() {
    let rows = Arc::new(Memory::new());
    rows.tables(TableRequest::Create("Staff")).await.unwrap();
    let server = Measured::start(rows.clone());
    let together = Arc::new(Barrier::new(CLIENTS + 1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|partition| {
            let request = batch(&server.address, partition);
            tokio::spawn(send_together(server.address.clone(), request, together.clone()))
        })
        .collect();
    let list = async || {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        let list = request(&server.address, "GET", "Tables", "", "");
        stream.write_all(list.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "a small request is served: {answer}");
    };
    for _ in 0..20 {
        list().await;
    }
    together.wait().await;
    list().await;
    let (mut done, mut refused) = (0, 0);
    for (partition, client) in clients.into_iter().enumerate() {
        let status = client.await.unwrap();
        let stored = count(&rows, partition).await;
        match &*status {
            "202" => done += 1,
            "503" => refused += 1,
            // A connection that was closed while the client still wrote.
            "" => {}
            _ => panic!("{status}"),
        }
        assert_eq!(stored, if status == "202" { ROWS } else { 0 }, "{partition}: {status}");
    }
    assert!(done >= 1 && refused >= 1, "{done} done, {refused} refused");
    let stored = done * (ROWS * 2 * CHARACTERS) as u64;
    let most = server.stop();
    assert!(most <= BUDGET + stored + 8 * MIB, "{done} batches were stored, {most} bytes taken");
}
