//! Exchanges with the server over raw connections, and entable's own client as a peer.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod access;
mod bounds;
mod faults;
mod odd;

use std::sync::Arc;

use entable::{
    AccountKey, Azure, SteppedClock, Ticks,
    backend::{Backend, Memory, TableRequest, azure},
};
use entable_server::{Server, ServerBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

/// The emulator's key, which is public.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The time of the server's clock.
fn now() -> Ticks {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// A server on a free port, which serves an empty store.
async fn start() -> (String, oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>) {
    serve(Server::builder(Arc::new(Memory::new()))).await
}

/// Runs a server on a free port, at a fixed time.
async fn serve(
    server: ServerBuilder,
) -> (String, oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>) {
    let server = server.address("127.0.0.1:0").clock(Arc::new(SteppedClock::new(now())));
    let server = server.bind().await.unwrap();
    let address = server.address().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    (address, stop, running)
}

/// Sends one signed request and returns the whole answer.
async fn send(address: &str, method: &str, target: &str, headers: &str, body: &str) -> String {
    send_at(now(), address, method, target, headers, body).await
}

/// Sends one request, signed at `time`.
async fn send_at(
    time: Ticks,
    address: &str,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> String {
    let date = entable_azure::wire::http_date_text(time);
    let path = target.split('?').next().unwrap();
    let text = format!("{date}\n/devstoreaccount1{path}");
    let key = AccountKey::new("devstoreaccount1", KEY).unwrap();
    let signature = key.sign_text(&text);
    let length = body.len();
    raw(
        address,
        &format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nx-ms-date: {date}\r\nConnection: close\r\n\
             Authorization: SharedKeyLite devstoreaccount1:{signature}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ),
    )
    .await
}

async fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn has_line(answer: &str, line: &str) -> bool {
    answer.lines().any(|found| found.eq_ignore_ascii_case(line))
}

const JSON: &str =
    "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n";

#[tokio::test]
async fn a_table_and_an_entity_live_their_life() {
    let (address, _stop, _running) = start().await;
    let base = "/devstoreaccount1";
    let made =
        send(&address, "POST", &format!("{base}/Tables"), JSON, r#"{"TableName":"Staff"}"#).await;
    assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
    assert!(
        has_line(&made, &format!("Location: http://{address}{base}/Tables('Staff')")),
        "{made}"
    );
    let twice =
        send(&address, "POST", &format!("{base}/Tables"), JSON, r#"{"TableName":"STAFF"}"#).await;
    assert!(twice.starts_with("HTTP/1.1 409 ") && twice.contains("TableAlreadyExists"), "{twice}");

    let row = r#"{"PartitionKey":"p","RowKey":"o'b","A":5,"B@odata.type":"Edm.Int64","B":"6","C":3.0,"D":"é"}"#;
    let inserted = send(&address, "POST", &format!("{base}/Staff"), JSON, row).await;
    assert!(inserted.starts_with("HTTP/1.1 201 "), "{inserted}");
    let entity = format!("{base}/Staff(PartitionKey='p',RowKey='o%27%27b')");
    assert!(
        has_line(
            &inserted,
            &format!("Location: http://{address}{base}/Staff(PartitionKey='p',RowKey='o''b')")
        ),
        "{inserted}"
    );
    let again = send(&address, "POST", &format!("{base}/Staff"), JSON, row).await;
    assert!(again.contains(r#"{"odata.error":{"code":"EntityAlreadyExists""#), "{again}");
    assert!(
        again.contains(r#""value":"The specified entity already exists.\nRequestId:"#),
        "{again}"
    );

    let got = send(&address, "GET", &entity, JSON, "").await;
    assert!(
        got.contains(r#""A":5,"B@odata.type":"Edm.Int64","B":"6","C":3.0,"D":"\u00e9"}"#),
        "{got}"
    );
    let bare = "Accept: application/json;odata=nometadata\r\n";
    let selected = send(&address, "GET", &format!("{entity}?$select=A,Z"), bare, "").await;
    assert!(selected.ends_with(r#"{"A":5,"Z":null}"#), "{selected}");
    let head = send(&address, "HEAD", &entity, JSON, "").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");

    let merge = format!("{JSON}X-HTTP-Method: MERGE\r\nIf-Match: *\r\n");
    let merged = send(&address, "POST", &entity, &merge, r#"{"A":7}"#).await;
    assert!(merged.starts_with("HTTP/1.1 204 "), "{merged}");
    let stale = format!("{JSON}If-Match: W/\"datetime'2001-01-01T00%3A00%3A00Z'\"\r\n");
    let refused = send(&address, "PUT", &entity, &stale, "{}").await;
    assert!(refused.starts_with("HTTP/1.1 412 "), "{refused}");
    let unconditional = send(&address, "DELETE", &entity, JSON, "").await;
    assert!(unconditional.starts_with("HTTP/1.1 400 "), "{unconditional}");
    let gone = send(&address, "DELETE", &entity, "If-Match: *\r\n", "").await;
    assert!(gone.starts_with("HTTP/1.1 204 "), "{gone}");
    let missing = send(&address, "GET", &entity, JSON, "").await;
    assert!(missing.starts_with("HTTP/1.1 404 ") && missing.contains("ResourceNotFound"));
}

#[tokio::test]
async fn a_continuation_has_the_form_of_the_service() {
    let (address, _stop, _running) = start().await;
    let base = "/devstoreaccount1";
    send(&address, "POST", &format!("{base}/Tables"), JSON, r#"{"TableName":"Staff"}"#).await;
    for (partition_key, row_key) in [("p", "a"), ("q", "b"), ("q", "c")] {
        let row = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"}}"#);
        send(&address, "POST", &format!("{base}/Staff"), JSON, &row).await;
    }
    let bare = "Accept: application/json;odata=nometadata\r\n";
    let first =
        send(&address, "GET", &format!("{base}/Staff()?$top=1&$select=RowKey"), bare, "").await;
    assert!(first.ends_with(r#"{"value":[{"RowKey":"a"}]}"#), "{first}");
    assert!(has_line(&first, "x-ms-continuation-NextPartitionKey: 1!4!cQ--"), "{first}");
    assert!(has_line(&first, "x-ms-continuation-NextRowKey: 1!4!Yg--"), "{first}");
    let rest = format!("{base}/Staff()?$select=RowKey&NextPartitionKey=1!4!cQ--");
    let rest = send(&address, "GET", &rest, bare, "").await;
    assert!(rest.ends_with(r#"{"value":[{"RowKey":"b"},{"RowKey":"c"}]}"#), "{rest}");
    assert!(!rest.contains("continuation"), "{rest}");
    for wrong in ["q", "1!5!cQ--", "1!4!c***", "1!4!_w--"] {
        let wrong = format!("{base}/Staff()?NextPartitionKey={wrong}");
        assert!(send(&address, "GET", &wrong, bare, "").await.starts_with("HTTP/1.1 400 "));
    }
}

/// Returns a batch of these operations, each a method, the end of an address, headers and a body.
fn batch_body(address: &str, operations: &[(&str, &str, &str, &str)]) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for (method, target, headers, json) in operations {
        body += &format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {method} http://{address}/devstoreaccount1/{target} HTTP/1.1\r\n{JSON}{headers}\r\n{json}\r\n"
        );
    }
    body + "--c--\r\n--b--\r\n"
}

async fn send_batch(address: &str, operations: &[(&str, &str, &str, &str)]) -> String {
    let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
    let body = batch_body(address, operations);
    send(address, "POST", "/devstoreaccount1/$batch", headers, &body).await
}

#[tokio::test]
async fn a_failed_batch_answers_with_one_part_and_changes_nothing() {
    let (address, _stop, _running) = start().await;
    let base = "/devstoreaccount1";
    let insert =
        ("POST", "Staff", "Prefer: return-no-content\r\n", r#"{"PartitionKey":"p","RowKey":"r"}"#);
    let delete = ("DELETE", "Staff(PartitionKey='p',RowKey='x')", "If-Match: *\r\n", "");
    let no_table = send_batch(&address, &[insert]).await;
    assert!(no_table.starts_with("HTTP/1.1 202 "), "{no_table}");
    assert!(no_table.contains("\r\nHTTP/1.1 404 Not Found\r\n"), "{no_table}");
    assert!(no_table.contains(r#""value":"0:The table specified does not exist."#), "{no_table}");
    send(&address, "POST", &format!("{base}/Tables"), JSON, r#"{"TableName":"Staff"}"#).await;
    let alone = send_batch(&address, &[delete]).await;
    assert!(alone.contains(r#""value":"The specified resource does not exist."#), "{alone}");
    let second = send_batch(&address, &[insert, delete]).await;
    assert!(second.contains(r#""value":"1:The specified resource does not exist."#), "{second}");
    assert_eq!(second.matches("\r\nHTTP/1.1 ").count(), 1, "{second}");
    let twice = send_batch(&address, &[insert, insert]).await;
    assert!(twice.contains(r#""code":"InvalidDuplicateRow""#) && twice.contains(r#""value":"1:"#));
    let done = send_batch(&address, &[insert]).await;
    assert!(done.contains("\r\nHTTP/1.1 204 No Content\r\n"), "{done}");
    assert!(has_line(&done, "Preference-Applied: return-no-content"), "{done}");
}

#[tokio::test]
async fn strangers_stay_outside() {
    let (address, _stop, _running) = start().await;
    let target = "/devstoreaccount1/Tables";
    let unsigned = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert!(raw(&address, &unsigned).await.starts_with("HTTP/1.1 401 "));
    // The body never comes: the answer does not wait for it.
    let body = format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4000000\r\nConnection: close\r\n\r\n"
    );
    assert!(raw(&address, &body).await.starts_with("HTTP/1.1 401 "));
    let date = entable_azure::wire::http_date_text(now());
    for scheme in ["SharedKey", "SharedKeyLite"] {
        let signed =
            format!("Authorization: {scheme} devstoreaccount1:AAAA\r\nx-ms-date: {date}\r\n");
        let forged = format!(
            "GET {target} HTTP/1.1\r\nHost: {address}\r\n{signed}Connection: close\r\n\r\n"
        );
        let refused = raw(&address, &forged).await;
        assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("AuthenticationFailed"));
        assert!(has_line(&refused, "x-ms-error-code: AuthenticationFailed"), "{refused}");
    }
    let later = |minutes: i64| Ticks::new(now().get() + minutes * 600_000_000).unwrap();
    for (minutes, status) in [(-16, "403"), (-14, "200"), (14, "200"), (16, "403")] {
        let answer = send_at(later(minutes), &address, "GET", target, JSON, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{minutes}: {answer}");
    }
    let rebound =
        "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(raw(&address, rebound).await.starts_with("HTTP/1.1 403 "));
    let origin = format!("{JSON}Origin: http://evil.example\r\n");
    let page = send(&address, "GET", target, &origin, "");
    assert!(page.await.starts_with("HTTP/1.1 403 "));
    let welcome = send(&address, "GET", target, JSON, "").await;
    assert!(
        welcome.starts_with("HTTP/1.1 200 ") && welcome.ends_with("\"value\":[]}"),
        "{welcome}"
    );
}

#[tokio::test]
async fn a_server_that_only_reads_refuses_every_change() {
    let rows = Arc::new(Memory::new());
    rows.tables(TableRequest::Create("Staff")).await.unwrap();
    let (address, _stop, _running) = serve(Server::builder(rows).read_only()).await;
    let base = "/devstoreaccount1";
    let entity = format!("{base}/Staff(PartitionKey='p',RowKey='r')");
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let table = r#"{"TableName":"Other"}"#;
    for (method, target, body) in [
        ("POST", format!("{base}/Staff"), body),
        ("PUT", entity, "{}"),
        ("POST", format!("{base}/Tables"), table),
        ("DELETE", format!("{base}/Tables('Staff')"), ""),
    ] {
        let refused = send(&address, method, &target, JSON, body).await;
        assert!(refused.starts_with("HTTP/1.1 403 "), "{method} {target}: {refused}");
        assert!(refused.contains("InsufficientAccountPermissions"), "{refused}");
    }
    let listed = send(&address, "GET", &format!("{base}/Tables"), JSON, "").await;
    assert!(listed.contains(r#"[{"TableName":"Staff"}]"#), "{listed}");
    let rows = send(&address, "GET", &format!("{base}/Staff()"), JSON, "").await;
    assert!(rows.starts_with("HTTP/1.1 200 ") && rows.ends_with("\"value\":[]}"), "{rows}");
}

#[tokio::test]
async fn a_secret_key_is_served_under_any_name_and_the_public_one_under_allowed_names() {
    let target = "/devstoreaccount1/Tables";
    let called = async |address: &str, host: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        raw(address, &request).await
    };
    let rows = || Server::builder(Arc::new(Memory::new()));
    let (public, _stop, _running) = serve(rows().allow_host("tables")).await;
    for host in [&*public, "localhost:7", "tables:10002", "TABLES"] {
        assert!(called(&public, host).await.starts_with("HTTP/1.1 401 "), "{host}");
    }
    for host in ["evil.example", "tables.evil.example:10002"] {
        assert!(called(&public, host).await.starts_with("HTTP/1.1 403 "), "{host}");
    }
    let own = AccountKey::new("devstoreaccount1", "AAECAwQ=").unwrap();
    let (secret, _stop, _running) = serve(rows().key(own)).await;
    assert!(called(&secret, "evil.example").await.starts_with("HTTP/1.1 401 "));
    // The emulator's key is public under any name of an account.
    let renamed = AccountKey::new("mine", KEY).unwrap();
    for server in [rows().key(renamed), rows().allow_host("tables:10002")] {
        let refused = server.address("0.0.0.0:0").bind().await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn a_stopped_server_ends() {
    let (address, stop, running) = start().await;
    assert!(
        send(&address, "GET", "/devstoreaccount1/Tables", JSON, "")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(&address).await.is_err());
}

/// A client on a server of its own, which runs in a thread of its own for as long as the process.
fn backend() -> Option<Azure> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let rows = Arc::new(Memory::new());
            let server = Server::builder(rows).address("127.0.0.1:0").bind().await.unwrap();
            sender.send(server.endpoint().to_owned()).unwrap();
            server.run(std::future::pending()).await.unwrap();
        });
    });
    let endpoint = receiver.recv().unwrap();
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={endpoint};"
    );
    let options = azure::AzureOptions::from_connection_string(&connection);
    Some(Azure::new(options.unwrap()).unwrap())
}

entable::conformance_suite!(over_the_wire, optional backend(), differs: [
    // A continuation has the service's form, `1!length!base64`; a bare key is refused.
    "page::token_without_row_key",
]);
