//! Clients that stop in the middle: of nothing, of a head, or of a body. They change no row and keep nobody out.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    bounds::{BASE, head},
    *,
};

/// The connections that a server has at one time.
const CONNECTIONS: usize = 1024;
/// How long a client may take that is served at once.
const SOON: Duration = Duration::from_secs(20);

/// Lets this process have as many sockets as the tests need, where it may.
fn allow_many_sockets() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Some systems refuse the maximum. The tests then work with what there is, or say what they miss.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Starts a server with the row `p`, `r` of the table `Staff`, whose `A` is 1.
async fn start_with_row() -> (String, oneshot::Sender<()>) {
    let (address, stop, _running) = start().await;
    let table = r#"{"TableName":"Staff"}"#;
    send(&address, "POST", &format!("{BASE}/Tables"), JSON, table).await;
    let row = r#"{"PartitionKey":"p","RowKey":"r","A":1}"#;
    let made = send(&address, "POST", &format!("{BASE}/Staff"), JSON, row).await;
    assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
    (address, stop)
}

/// Returns the rows of `Staff` as JSON.
async fn rows(address: &str) -> String {
    let bare = "Accept: application/json;odata=nometadata\r\n";
    let target = format!("{BASE}/Staff()?$select=PartitionKey,RowKey,A");
    let answer = timeout(SOON, send(address, "GET", &target, bare, "")).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

const UNCHANGED: &str = r#"{"value":[{"PartitionKey":"p","RowKey":"r","A":1}]}"#;

/// Returns requests in two parts: all that would change a row, and an end without which nothing may happen.
fn half_bodies(address: &str) -> Vec<(String, &'static str)> {
    let row = format!("{BASE}/Staff(PartitionKey='p',RowKey='r')");
    let change = ("PUT", "Staff(PartitionKey='p',RowKey='r')", "", r#"{"A":2}"#);
    let batch = batch_body(address, &[change]);
    let new = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    let longer = |body: &str| format!("Content-Length: {}\r\n", body.len() + 1);
    let mixed = longer(&batch) + "Content-Type: multipart/mixed; boundary=b\r\n";
    let mixed = head(address, "POST", &format!("{BASE}/$batch"), &mixed);
    let chunked = "Transfer-Encoding: chunked\r\n";
    let json = r#"{"A":2}"#;
    vec![
        (head(address, "PUT", &row, &longer(json)) + json, "\n"),
        (head(address, "PATCH", &row, &longer(json)) + json, "\n"),
        (head(address, "PUT", &row, chunked) + "7\r\n" + json + "\r\n", "0\r\n\r\n"),
        (head(address, "PUT", &row, chunked) + "8\r\n" + json, " \r\n0\r\n\r\n"),
        (head(address, "POST", &format!("{BASE}/Staff"), &longer(new)) + new, "\n"),
        // A header is sent once, so the form of the batch takes the place of JSON.
        (mixed.replacen("Content-Type: application/json\r\n", "", 1) + &batch, "\n"),
    ]
}

#[tokio::test]
async fn a_body_whose_end_never_comes_changes_no_row() {
    let (address, _stop) = start_with_row().await;
    for (half, _) in half_bodies(&address) {
        // One client is gone, another has only stopped sending.
        let mut gone = TcpStream::connect(&address).await.unwrap();
        gone.write_all(half.as_bytes()).await.unwrap();
        drop(gone);
        let mut stopped = TcpStream::connect(&address).await.unwrap();
        stopped.write_all(half.as_bytes()).await.unwrap();
        stopped.shutdown().await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stopped.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{half}\n{answer}");
        assert_eq!(rows(&address).await, UNCHANGED, "{half}");
    }
    // The requests are refused for their missing end alone.
    for (half, end) in half_bodies(&address) {
        let mut whole = TcpStream::connect(&address).await.unwrap();
        whole.write_all(format!("{half}{end}").as_bytes()).await.unwrap();
        let mut status = [0; 10];
        timeout(SOON, whole.read_exact(&mut status)).await.unwrap().unwrap();
        assert_eq!(&status, b"HTTP/1.1 2", "{half}");
    }
}

#[tokio::test]
async fn a_thousand_idle_connections_keep_no_client_out() {
    allow_many_sockets();
    let (address, _stop) = start_with_row().await;
    let mut idle = Vec::new();
    for at in 0..1_000 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // Some have been served before, and keep their connection.
        if at % 4 == 0 {
            let request = head(&address, "GET", &format!("{BASE}/Tables"), "");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = [0; 15];
            timeout(SOON, stream.read_exact(&mut answer)).await.unwrap().unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
        }
        idle.push(stream);
    }
    for _ in 0..20 {
        assert_eq!(rows(&address).await, UNCHANGED);
    }
}

#[tokio::test]
async fn clients_that_stall_lose_their_slots_and_change_nothing() {
    allow_many_sockets();
    let (address, _stop) = start_with_row().await;
    let bodies = half_bodies(&address);
    let mut stalled = Vec::new();
    for at in 0..CONNECTIONS {
        let half = match at % 2 {
            0 => "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: local",
            _ => &bodies[at / 2 % bodies.len()].0,
        };
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    let mut next = tokio::spawn({
        let address = address.clone();
        async move { rows(&address).await }
    });
    assert!(timeout(Duration::from_millis(500), &mut next).await.is_err(), "all slots are taken");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(15)).await;
    tokio::time::resume();
    assert!(!next.is_finished(), "a slow client has 30 s");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(16)).await;
    tokio::time::resume();
    assert_eq!(rows(&address).await, UNCHANGED);
    for (at, mut stream) in stalled.into_iter().enumerate() {
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let is_head = at % 2 == 0;
        assert_eq!(is_head, !answer.contains("OperationTimedOut"), "{at}: {answer}");
    }
}
