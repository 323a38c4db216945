//! A server on a real socket that answers in any manner.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{Azure, AzureOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scripted_http::KEY;

/// A server's answer to a request: bytes, and a pause after each; then the connection closes.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes that are sent at a time.
    pub(crate) chunk: usize,
    pub(crate) pause: Duration,
    /// Goes on with these for ever.
    pub(crate) forever: Option<Vec<u8>>,
}

pub(crate) fn says(text: impl Into<Vec<u8>>) -> Manner {
    Manner { bytes: text.into(), chunk: usize::MAX, pause: Duration::ZERO, forever: None }
}

pub(crate) fn http(status: &str, headers: &str, body: &str) -> Manner {
    says(format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A backend that asks a server of that manner, and how many requests the server got.
pub(crate) async fn server(manner: Manner) -> (Azure, Arc<AtomicUsize>) {
    let (address, asked) = listen(manner).await;
    let options = AzureOptions::from_account_key("myaccount", KEY).unwrap();
    let options = options.endpoint(&address).unwrap().timeout(Duration::from_millis(500));
    (Azure::new(options).unwrap(), asked)
}

/// The endpoint of a server of that manner, and how many requests it got.
pub(crate) async fn listen(manner: Manner) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/myaccount", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (manner, asked) = (manner.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                if whole(&mut stream).await {
                    asked.fetch_add(1, Ordering::SeqCst);
                    for chunk in manner.bytes.chunks(manner.chunk) {
                        let _ = stream.write_all(chunk).await;
                        tokio::time::sleep(manner.pause).await;
                    }
                    while let Some(more) = &manner.forever {
                        if stream.write_all(more).await.is_err() {
                            break;
                        }
                    }
                }
            });
        }
    });
    (address, count)
}

/// Reads a request to its end; `false`: there was none.
async fn whole(stream: &mut tokio::net::TcpStream) -> bool {
    let (mut request, mut bytes) = (Vec::new(), [0; 65536]);
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
            let length = length.map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                return true;
            }
        }
        match stream.read(&mut bytes).await {
            Ok(read) if read > 0 => request.extend_from_slice(&bytes[..read]),
            _ => return false,
        }
    }
}
