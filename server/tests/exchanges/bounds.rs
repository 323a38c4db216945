//! Bounds: what a client that sends or reads too much, or too slowly, gets, and that others are served meanwhile.

use std::time::Duration;

use entable::{Batch, Operation, Row, ValueRef};
use tokio::time::timeout;

use super::*;

pub(crate) const BASE: &str = "/devstoreaccount1";
const MIB: usize = 1024 * 1024;

/// Returns the head of a signed request with these headers.
pub(crate) fn head(address: &str, method: &str, path: &str, headers: &str) -> String {
    let date = entable_azure::wire::http_date_text(now());
    let key = AccountKey::emulator();
    let signature = key.sign_text(&format!("{date}\n/devstoreaccount1{path}"));
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nx-ms-date: {date}\r\n{JSON}{headers}\
         Authorization: SharedKeyLite devstoreaccount1:{signature}\r\n\r\n"
    )
}

#[tokio::test]
async fn heads_bodies_and_nesting_have_limits() {
    let (address, _stop, _running) = start().await;
    let tables = format!("{BASE}/Tables");
    send(&address, "POST", &tables, JSON, r#"{"TableName":"Staff"}"#).await;
    let long = format!("X-Long: {}\r\n", "x".repeat(300_000));
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    for headers in [long, many] {
        let refused = send(&address, "GET", &tables, &headers, "").await;
        assert!(refused.starts_with("HTTP/1.1 431 "), "{refused}");
    }
    let declared = head(
        &address,
        "POST",
        &format!("{BASE}/Staff"),
        "Content-Length: 4194305\r\nConnection: close\r\n",
    );
    let refused = raw(&address, &declared).await;
    assert!(refused.starts_with("HTTP/1.1 413 ") && refused.contains("RequestBodyTooLarge"));
    let chunk = format!("{:x}\r\n{}\r\n", MIB, "x".repeat(MIB));
    let chunked = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request = head(&address, "POST", &format!("{BASE}/Staff"), chunked);
    stream.write_all(request.as_bytes()).await.unwrap();
    for _ in 0..5 {
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(chunk.as_bytes()).await;
    }
    let mut refused = [0; 12];
    stream.read_exact(&mut refused).await.unwrap();
    assert_eq!(&refused, b"HTTP/1.1 413");
    let gzip = "Content-Encoding: gzip\r\n";
    let refused = send(&address, "POST", &tables, gzip, "xx").await;
    assert!(refused.starts_with("HTTP/1.1 415 "), "{refused}");

    let deep = format!("{}A{}", "(".repeat(5_000), ")".repeat(5_000));
    let refused = send(&address, "GET", &format!("{BASE}/Staff()?$filter={deep}"), JSON, "").await;
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    let deep = format!("{{\"A\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for target in [format!("{BASE}/Staff"), tables.clone()] {
        let refused = send(&address, "POST", &target, JSON, &deep).await;
        assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    }
    let served = send(&address, "GET", &tables, JSON, "").await;
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
}

#[tokio::test]
async fn requests_beyond_the_memory_are_answered_with_503() {
    let server = Server::builder(Arc::new(Memory::new())).memory(0);
    let (address, _stop, _running) = serve(server).await;
    // Half of the least memory is for bodies, of which each byte takes three.
    let request = head(&address, "POST", &format!("{BASE}/$batch"), "Content-Length: 4194304\r\n");
    let most = vec![b'x'; 4 * MIB - 1];
    let mut held = Vec::new();
    let refused = loop {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let _ = stream.write_all(&most).await;
        let mut answer = [0; 12];
        match timeout(Duration::from_millis(500), stream.read_exact(&mut answer)).await {
            Ok(read) => {
                read.unwrap();
                break answer;
            }
            Err(_) => held.push(stream),
        }
        assert!(held.len() < 8, "the memory has a limit");
    };
    assert_eq!(&refused, b"HTTP/1.1 503");
    assert_eq!(held.len(), 2, "32 MiB hold two bodies of 4 MiB");
    let served = send(&address, "GET", &format!("{BASE}/Tables"), JSON, "").await;
    assert!(served.starts_with("HTTP/1.1 200 "), "small requests are served: {served}");
    drop(held);
    // The memory is free again once the server notices that the clients are gone.
    let freed = async {
        loop {
            let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
            let body = "x".repeat(4 * MIB);
            let answer = send(&address, "POST", &format!("{BASE}/$batch"), headers, &body).await;
            if answer.starts_with("HTTP/1.1 400 ") {
                break;
            }
        }
    };
    timeout(Duration::from_secs(20), freed).await.unwrap();
}

#[tokio::test]
async fn pages_have_a_limit_of_bytes_on_a_store_in_memory() {
    let rows = Arc::new(Memory::new());
    rows.tables(TableRequest::Create("Staff")).await.unwrap();
    let bytes = vec![7; 60 * 1024];
    for n in 0..24 {
        let mut row = Row::build("p", &format!("{n:02}"));
        for at in 0..15 {
            row = row.with(&format!("A{at}"), ValueRef::Binary(&bytes)).unwrap();
        }
        let insert = Operation::insert(row.finish().unwrap());
        rows.apply(&Batch::single("Staff", insert).unwrap()).await.unwrap();
    }
    let (address, _stop, _running) = serve(Server::builder(rows)).await;
    let page = send(&address, "GET", &format!("{BASE}/Staff()?$select=A0"), JSON, "").await;
    assert!(!page.contains("x-ms-continuation-nextrowkey"), "selected properties are small");
    let page = send(&address, "GET", &format!("{BASE}/Staff()"), JSON, "").await;
    let rows = page.matches("\"RowKey\":").count();
    assert!((17..24).contains(&rows), "{rows} rows of 0.9 MB in a page of 16 MiB");
    assert!(page.contains("x-ms-continuation-nextrowkey"));
}

#[tokio::test]
async fn a_stopped_server_does_not_wait_for_idle_clients() {
    let (address, stop, running) = start().await;
    let mut idle = TcpStream::connect(&address).await.unwrap();
    let request = head(&address, "GET", &format!("{BASE}/Tables"), "");
    idle.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    let _silent = TcpStream::connect(&address).await.unwrap();
    let mut half = TcpStream::connect(&address).await.unwrap();
    half.write_all(b"GET /devstoreaccount1/Tables HT").await.unwrap();
    // A request that has begun is finished: its body comes after the server was told to stop.
    let mut begun = TcpStream::connect(&address).await.unwrap();
    let body = r#"{"TableName":"Staff"}"#;
    let length = format!("Content-Length: {}\r\n", body.len());
    let request = head(&address, "POST", &format!("{BASE}/Tables"), &length);
    begun.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!running.is_finished());
    begun.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    // The headers of a request may take 30 s while the server runs.
    timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
}
