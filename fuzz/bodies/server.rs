//! What each fuzz target of the server does with its input. `server/tests/replay.rs` does the same without a fuzzer.
//!
//! An input that is refused is fine. One that is taken has to come back as it went in, and none may be the server's fault.

#![allow(dead_code, reason = "each target does one of these")]

use std::sync::Arc;

use entable::{
    AccountKey, SteppedClock, Ticks,
    backend::{Backend, Memory, TableRequest},
};
use entable_azure::wire::{row_address, table_text_to_sign};
use entable_server::__fuzz::Unconnected;
use serde_json::Value as Json;

const BASE: &str = "/devstoreaccount1";
const FULL: (&str, &str) = ("Accept", "application/json;odata=fullmetadata");
/// The server's time, in 2026.
const NOW: &str = "2026-01-02T03:04:05Z";

/// Calls `work` with a server of the empty table `Staff`.
fn serve(work: impl AsyncFnOnce(Served)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let clock = Arc::new(SteppedClock::new(NOW.parse().unwrap()));
    runtime.block_on(async {
        let rows = Arc::new(Memory::with_clock(clock.clone()));
        rows.tables(TableRequest::Create("Staff")).await.unwrap();
        work(Served(Unconnected::new(rows, clock))).await;
    });
}

struct Served(Unconnected);

impl Served {
    /// Sends a request, and asserts that the server does not answer with an error of its own.
    async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, String) {
        let headers = [&[FULL], headers].concat();
        let target = format!("{BASE}/{target}");
        let (status, body) = self.0.answer(method, &target, &headers, body).await;
        let body = String::from_utf8(body).unwrap();
        assert!(status < 500 || status == 501, "{method} {target}: {status} {body}");
        (status, body)
    }

    /// Returns all rows as JSON.
    async fn rows(&self) -> Json {
        let (status, page) = self.send("GET", "Staff()", &[], b"").await;
        assert_eq!(status, 200);
        serde_json::from_str(&page).unwrap()
    }
}

/// Addresses: an address that names a row names the same row as the address that is made from its keys.
pub(crate) fn server_address(data: &[u8]) {
    let Ok(target) = std::str::from_utf8(data) else { return };
    serve(async |server| {
        for method in ["GET", "DELETE", "POST"] {
            server.send(method, target, &[("If-Match", "*")], b"{}").await;
        }
        let (status, _) = server.send("PUT", target, &[], br#"{"A":1}"#).await;
        if status != 204 {
            return;
        }
        let rows = server.rows().await;
        let row = &rows["value"][0];
        let (partition_key, row_key) =
            (row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap());
        let made = row_address("Staff", partition_key, row_key);
        let (status, _) = server.send("PUT", &made, &[("If-Match", "*")], br#"{"A":2}"#).await;
        assert_eq!(status, 204, "{target}: {made}");
        let rows = server.rows().await;
        assert_eq!(rows["value"].as_array().unwrap().len(), 1, "{target}: {made}");
        assert_eq!(rows["value"][0]["A"], 2, "{target}: {made}");
    });
}

/// Returns the content of an entity: without what each write changes.
fn content(json: &str) -> Json {
    let mut json: Json = serde_json::from_str(json).unwrap();
    for name in ["Timestamp", "odata.etag"] {
        json.as_object_mut().unwrap().remove(name);
    }
    json
}

/// Entities as JSON: one that is taken is answered in a form that is taken for the same entity.
pub(crate) fn server_json(data: &[u8]) {
    serve(async |server| {
        server.send("POST", "Tables", &[], data).await;
        server.send("PUT", "Staff(PartitionKey='p',RowKey='r')", &[], data).await;
        server
            .send("DELETE", "Staff(PartitionKey='p',RowKey='r')", &[("If-Match", "*")], b"")
            .await;
        let (status, answer) = server.send("POST", "Staff", &[], data).await;
        if status != 201 {
            return;
        }
        let entity = content(&answer);
        let keys = [&entity["PartitionKey"], &entity["RowKey"]].map(|key| key.as_str().unwrap());
        let address = row_address("Staff", keys[0], keys[1]);
        let any = [("If-Match", "*")];
        let (status, refusal) = server.send("PUT", &address, &any, answer.as_bytes()).await;
        assert_eq!(status, 204, "{answer}\n{refusal}");
        let (status, again) = server.send("GET", &address, &[], b"").await;
        assert_eq!((status, content(&again)), (200, entity));
    });
}

/// Bodies of transactions: one that fails changes no row.
pub(crate) fn server_batch(data: &[u8]) {
    serve(async |server| {
        let row = br#"{"PartitionKey":"p","RowKey":"r","A":1}"#;
        server.send("POST", "Staff", &[], row).await;
        let before = server.rows().await;
        let mixed = [("Content-Type", "multipart/mixed; boundary=b")];
        let (status, answer) = server.send("POST", "$batch", &mixed, data).await;
        let has_failed = answer.lines().any(|line| line.starts_with("HTTP/1.1 4"));
        assert!(!answer.lines().any(|line| line.starts_with("HTTP/1.1 500")), "{answer}");
        if status != 202 || has_failed {
            assert_eq!(server.rows().await, before, "{answer}");
        }
    });
}

/// Access policies and properties as XML: a document that is taken is answered in a form that is taken for the same.
/// The first byte chooses one of them.
pub(crate) fn server_xml(data: &[u8]) {
    let Some((first, document)) = data.split_first() else { return };
    let target = if first % 2 == 0 { "Staff?comp=acl" } else { "?comp=properties" };
    serve(async |server| {
        let (status, _) = server.send("PUT", target, &[], document).await;
        if status >= 400 {
            return;
        }
        let (status, answer) = server.send("GET", target, &[], b"").await;
        assert_eq!(status, 200, "{answer}");
        let (_, own) = answer.split_once("?>").unwrap();
        let (status, refusal) = server.send("PUT", target, &[], own.as_bytes()).await;
        assert!(status < 300, "{own}\n{refusal}");
        assert_eq!(server.send("GET", target, &[], b"").await, (200, answer));
    });
}

/// Headers and shared access signatures. The first line is a target, and each other line a header: no request gets in
/// without the key. Members of a signature that are then signed get in until they expire.
pub(crate) fn server_access(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (target, headers) = text.split_once('\n').unwrap_or((text, ""));
    let headers: Vec<_> = headers.lines().filter_map(|line| line.split_once(": ")).collect();
    serve(async |server| {
        let status = server.0.admit("GET", target, &headers).await;
        assert!((400..500).contains(&status), "{status}: {text}");
        let query = target.split_once('?').map_or("", |(_, query)| query);
        if query.contains(['%', '+', '#']) || query.contains("ss=") {
            return;
        }
        let options: Vec<_> =
            query.split('&').filter_map(|member| member.split_once('=')).collect();
        let member = |name: &str| {
            options.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value)
        };
        let key = AccountKey::emulator();
        let signed = table_text_to_sign(key.account(), &[member("si")], member);
        let signature: String =
            key.sign_text(&signed).bytes().map(|byte| format!("%{byte:02x}")).collect();
        let target = target.replace("sig=", "unsigned=");
        let separator = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{separator}sig={signature}");
        let status = server.0.admit("GET", &target, &[("Host", "localhost")]).await;
        assert!(status == 200 || (400..500).contains(&status), "{status}: {target}");
        let now: Ticks = NOW.parse().unwrap();
        let is_valid = member("se").parse::<Ticks>().is_ok_and(|end| end > now);
        assert!(status != 200 || is_valid, "{target}");
    });
}
