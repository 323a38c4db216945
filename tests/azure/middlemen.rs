//! Tests what stands between a program and the service: proxies, caches and servers that answer more than
//! they were asked, on real sockets and over whichever transport is on.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    Azure, AzureOptions, Client, Error, Operation, RetryPolicy, ValueRef, backend::azure::Transport,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use crate::{
    emulator::{apply, read, row},
    raw_server::{http, listen, says, server},
    scripted_http::{Fake, KEY, Reply, answer},
};

const JSON: &str = "Content-Type: application/json\r\n";

fn body(text: &str) -> String {
    format!(
        r#"{{"PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-01T00:00:00Z","Text":"{text}"}}"#
    )
}

fn shown(errors: &[Error]) -> String {
    let mut all = String::new();
    for error in errors {
        let _ = write!(all, "{error} {error:?}");
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            let _ = write!(all, "{cause} {cause:?}");
            source = cause.source();
        }
    }
    all
}

/// Sends a read and a write, which both have to fail, and returns their errors.
async fn both_fail(azure: &Azure) -> [Error; 2] {
    let insert = Operation::insert(row("p", "r", "x"));
    [
        read(azure, "Staff", "p", "r").await.map(drop).unwrap_err(),
        apply(azure, "Staff", insert).await.map(drop).unwrap_err(),
    ]
}

/// The CRC-32 that ends a gzip stream.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// Packs a short text as gzip, in one stored block.
fn gzip(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(crc(text.as_bytes()).to_le_bytes());
    bytes.extend(u32::from(length).to_le_bytes());
    bytes
}

/// Nobody asked for a packed answer. A transport that unpacked it could be filled by a few bytes.
#[tokio::test]
async fn a_packed_answer_is_not_unpacked() {
    let packed = gzip(&body("x"));
    for encoding in ["gzip", "x-gzip", "GZIP"] {
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\n{JSON}Content-Encoding: {encoding}\r\n\
             Content-Length: {}\r\n\r\n",
            packed.len()
        );
        let (azure, asked) = server(says([head.as_bytes(), &packed].concat())).await;
        let [read, write] = both_fail(&azure).await;
        assert!(read.is_backend() || read.is_corrupt(), "{encoding}: {read:?}");
        assert!(write.is_ambiguous(), "{encoding}: {write:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn headers_without_end_are_cut() {
    for more in ["X-More: y\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let begin = if more.starts_with('X') { "HTTP/1.1 200 OK\r\n" } else { "" };
        let mut flood = says(begin);
        flood.forever = Some(more.repeat(1000).into_bytes());
        let (azure, _) = server(flood).await;
        let [read, write] = both_fail(&azure).await;
        assert!(read.is_backend() && write.is_ambiguous(), "{more}: {read:?} {write:?}");
    }
}

/// A server that keeps the connection, and behind the answer to each request sends another that nobody asked
/// for. Signals when both are sent.
async fn listen_and_answer_twice() -> (String, Arc<AtomicUsize>, Arc<Notify>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/myaccount", listener.local_addr().unwrap());
    let (count, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (asked, done) = (Arc::clone(&count), Arc::clone(&sent));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (asked, done) = (Arc::clone(&asked), Arc::clone(&done));
            tokio::spawn(async move {
                let mut bytes = [0; 65_536];
                // A read of one row fits into one packet and has no body.
                while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    let answer = |text: &str| {
                        let body = body(text);
                        format!(
                            "HTTP/1.1 200 OK\r\n{JSON}Content-Length: {}\r\n\r\n{body}",
                            body.len()
                        )
                    };
                    let twice = answer(&format!("own {number}")) + &answer("forged");
                    let _ = stream.write_all(twice.as_bytes()).await;
                    done.notify_one();
                }
            });
        }
    });
    (address, count, sent)
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one() {
    let (address, asked, sent) = listen_and_answer_twice().await;
    let options = AzureOptions::from_account_key("myaccount", KEY).unwrap();
    let azure = Azure::new(options.endpoint(&address).unwrap()).unwrap();
    for number in 0..5 {
        let found = read(&azure, "Staff", "p", "r").await.unwrap().unwrap();
        let own = format!("own {number}");
        assert_eq!(found.get("Text").unwrap(), Some(ValueRef::String(&own)));
        sent.notified().await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_value_of_another_type_is_an_error_of_that_row() {
    let wrong = [
        r#""Text@odata.type":"Edm.Int64","Text":"no number""#,
        r#""Text@odata.type":"Edm.DateTime","Text":"2026-13-40T00:00:00Z""#,
        r#""Text@odata.type":"Edm.Binary","Text":"***""#,
        r#""Text@odata.type":"Edm.Guid","Text":"1""#,
        r#""Text":{"a":[]}"#,
        r#""Text":[1]"#,
        r#""Text":99999999999"#,
    ];
    for value in wrong {
        let body = format!(
            r#"{{"PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-01T00:00:00Z",{value}}}"#
        );
        let (azure, _) = server(http("200 OK", JSON, &body)).await;
        let error = read(&azure, "Staff", "p", "r").await.unwrap_err();
        assert!(
            error.is_corrupt() || error.is_backend() || error.is_decode(),
            "{value}: {error:?}"
        );
        assert_eq!(error.table(), Some("Staff"), "{value}");
    }
}

const PASSWORD: &str = "s3cretOfTheProxy";

/// Options that go through a proxy at this address, with a password.
fn behind(proxy: &str) -> AzureOptions {
    let (_, host) = proxy.split_once("//").unwrap();
    let (host, _) = host.split_once('/').unwrap();
    AzureOptions::from_sas("sv=2019-02-02&tn=Staff&sp=r&sig=s3cretSignature%3D")
        .unwrap()
        .endpoint("http://myaccount.table.core.windows.net")
        .unwrap()
        .allow_http()
        .timeout(Duration::from_secs(20))
        .proxy(&format!("http://someone:{PASSWORD}@{host}"))
        .unwrap()
}

#[tokio::test]
async fn a_proxy_passes_requests_on_and_its_own_answers_are_none() {
    let (proxy, asked) = listen(http("200 OK", JSON, &body("x"))).await;
    let azure = Azure::new(behind(&proxy)).unwrap();
    assert!(read(&azure, "Staff", "p", "r").await.unwrap().is_some(), "passed on");
    assert_eq!(asked.load(Ordering::SeqCst), 1);

    let html = "<html>Sign in to the proxy</html>";
    for (status, open) in [
        ("407 Proxy Authentication Required", false),
        ("403 Forbidden", false),
        ("200 OK", true),
        ("502 Bad Gateway", true),
        ("504 Gateway Timeout", true),
    ] {
        let headers = "Proxy-Authenticate: Basic\r\nContent-Type: text/html\r\n";
        let (proxy, asked) = listen(http(status, headers, html)).await;
        let azure = Azure::new(behind(&proxy)).unwrap();
        let [read, write] = both_fail(&azure).await;
        assert!(!read.is_not_found() && !write.is_conflict(), "{status}: {read:?}");
        assert_eq!(write.is_ambiguous(), open, "{status}: {write:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 2, "{status}: nothing is sent twice");
        let all = shown(&[read, write]) + &format!("{azure:?}");
        assert!(!all.contains(PASSWORD) && !all.contains("s3cretSignature"), "{status}: {all}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_gone_is_no_doubt_and_is_not_quoted() {
    // Taken and given back, so that nobody listens there.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let azure = Azure::new(behind(&proxy)).unwrap();
    let errors = both_fail(&azure).await;
    assert!(errors.iter().all(Error::is_backend), "nothing was sent: {errors:?}");
    let all = shown(&errors);
    assert!(!all.contains(PASSWORD) && !all.contains("s3cretSignature"), "{all}");
}

/// The clock of the machine is wrong, or the service asks for a wait without end: the advice is given, and
/// nobody waits.
#[tokio::test(start_paused = true)]
async fn clocks_that_are_apart_and_waits_without_end() {
    let denied =
        crate::scripted_http::refusal(403, "AuthenticationFailed", "The Date header is too old.");
    let error = read(&Fake::new([denied]).azure(), "Staff", "p", "r").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("clock is right"), "{error}");

    let busy = |wait: &'static str| {
        answer(503, &[("x-ms-error-code", "ServerBusy"), ("retry-after", wait)])
    };
    for endless in
        ["99999999999999999999", "18446744073709551615", "86400", "Fri, 31 Dec 9999 23:59:59 GMT"]
    {
        let fake = Fake::new(vec![busy(endless); 6]);
        let transport = Arc::clone(&fake) as Arc<dyn Transport>;
        let options =
            AzureOptions::from_account_key("myaccount", KEY).unwrap().transport(transport);
        let policy = RetryPolicy::new().attempts(6);
        let client = Client::builder().account(&Azure::new(options).unwrap()).retry(policy);
        let begun = tokio::time::Instant::now();
        let error = client.build().unwrap().tables().await.map(drop).unwrap_err();
        assert!(error.is_throttled(), "{endless}: {error}");
        assert!(begun.elapsed() <= Duration::from_secs(120), "{endless}: {:?}", begun.elapsed());
    }
    // Over already, or no time at all: it is asked again after the usual wait.
    for over in ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "soon", ""] {
        let tables = Reply::Answer(200, vec![], "{\"value\":[]}".to_owned());
        let fake = Fake::new([busy(over), tables]);
        let transport = Arc::clone(&fake) as Arc<dyn Transport>;
        let options =
            AzureOptions::from_account_key("myaccount", KEY).unwrap().transport(transport);
        let client = Client::azure(options).unwrap();
        assert!(client.tables().await.unwrap().is_empty(), "{over}");
        assert_eq!(fake.asked().len(), 2, "{over}");
    }
}
