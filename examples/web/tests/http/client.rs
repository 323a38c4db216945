//! A server on a free port, and a client that speaks to it.

use std::net::SocketAddr;

use entable::{
    Client,
    backend::{Memory, layer::FaultInjector},
};
use entable_example_web::{employee::Employee, routes::app};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Answer {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// Returns the ETag of a response that has one.
    pub(crate) fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }
}

/// Sends one request, and reads to the end of the connection.
pub(crate) async fn send(
    address: SocketAddr,
    request: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    head.push_str(&format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n"));
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    Answer { status, head: head.to_owned(), body }
}

/// The service without its worker, whose requests would meet the faults that are meant for others.
pub(crate) struct Service {
    address: SocketAddr,
    pub(crate) fault: FaultInjector,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let fault = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(fault.clone()).build().unwrap();
        client.table::<Employee>().create().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app(&client)).await });
        Self { address, fault }
    }

    pub(crate) async fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(self.address, request, headers, body).await
    }

    /// Adds an employee of Sales, and returns its ETag.
    pub(crate) async fn add(&self, id: u32) -> String {
        let (path, body) = (format!("PUT {}", path(id)), body(&format!("e{id}@contoso.com")));
        let added = self.send(&path, &[("if-none-match", "*")], &body).await;
        assert_eq!(added.status, 201, "{added:?}");
        added.etag().to_owned()
    }
}

pub(crate) fn path(id: u32) -> String {
    format!("/departments/Sales/employees/{id}")
}

pub(crate) fn body(email: &str) -> String {
    format!(r#"{{"name":"Don","email":"{email}"}}"#)
}
