//! Requests with shared access signatures.

use base64::{Engine, engine::general_purpose::STANDARD};
use entable::{
    backend::{Embedded, layer::ReadOnly},
    sas::{AccountPermissions, AccountSas, ResourceTypes, TablePermissions, TableSas},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::{Duration, OffsetDateTime};

use super::*;

/// Signs a text with the emulator's key, without the library.
fn hmac(text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns the query of a signature with these members, which signs the lines `lines` of them.
fn query(members: &[(&str, &str)], text: &str) -> String {
    let mut query: String =
        members.iter().map(|(name, value)| format!("{name}={}&", encoded(value))).collect();
    query += &format!("sig={}", encoded(&hmac(text)));
    query
}

fn member<'a>(members: &[(&str, &'a str)], name: &str) -> &'a str {
    members.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

/// Signs for the table `Staff`, by the text that the service documents.
fn table_sas(members: &[(&str, &str)]) -> String {
    let members = [&[("sv", "2019-02-02"), ("tn", "STAFF")][..], members].concat();
    let of = |name| member(&members, name);
    let text = format!(
        "{}\n{}\n{}\n/table/devstoreaccount1/staff\n{}\n{}\n{}\n2019-02-02\n{}\n{}\n{}\n{}",
        of("sp"),
        of("st"),
        of("se"),
        of("si"),
        of("sip"),
        of("spr"),
        of("spk"),
        of("srk"),
        of("epk"),
        of("erk"),
    );
    query(&members, &text)
}

fn account_sas(version: &str, members: &[(&str, &str)]) -> String {
    let members = [&[("sv", version)][..], members].concat();
    let of = |name| member(&members, name);
    let mut text = format!(
        "devstoreaccount1\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{version}\n",
        of("sp"),
        of("ss"),
        of("srt"),
        of("st"),
        of("se"),
        of("sip"),
        of("spr"),
    );
    if version >= "2020-12-06" {
        text += "\n";
    }
    query(&members, &text)
}

const BASE: &str = "/devstoreaccount1";
/// An end after the server's time.
const END: (&str, &str) = ("se", "2026-02-01T00:00:00Z");

/// Sends a request without a signature of its own.
async fn send_with(
    address: &str,
    sas: &str,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    let length = body.len();
    raw(
        address,
        &format!(
            "{method} {BASE}/{target}{separator}{sas} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             {JSON}{headers}Content-Length: {length}\r\n\r\n{body}"
        ),
    )
    .await
}

/// Starts a server with the table `Staff` and some rows.
async fn start_with_rows() -> (String, oneshot::Sender<()>) {
    let (address, stop, _running) = start().await;
    for table in ["Staff", "Other"] {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        send(&address, "POST", &format!("{BASE}/Tables"), JSON, &body).await;
    }
    for (partition_key, row_key) in
        [("a", "1"), ("b", "1"), ("b", "2"), ("c", "1"), ("\u{1f600}", "1"), ("\u{e000}", "1")]
    {
        let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"}}"#);
        let made = send(&address, "POST", &format!("{BASE}/Staff"), JSON, &body).await;
        assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
    }
    (address, stop)
}

/// Asserts the status of an answer, and the code of its error if it has one.
fn assert_answer(answer: &str, expected: &str, what: &str) {
    let (status, code) = expected.split_once(' ').unwrap_or((expected, ""));
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
    assert!(answer.contains(code), "{what}: {answer}");
}

#[tokio::test]
async fn a_signature_for_a_table_permits_what_its_letters_say() {
    let (address, _stop) = start_with_rows().await;
    let row = "Staff(PartitionKey='b',RowKey='1')";
    let insert = r#"{"PartitionKey":"n","RowKey":"1"}"#;
    let any = "If-Match: *\r\n";
    let denied = "403 AuthorizationPermissionMismatch";
    let requests = [
        ("r", "GET", "Staff()", "", "", "200"),
        ("r", "GET", row, "", "", "200"),
        ("aud", "GET", row, "", "", denied),
        ("aud", "GET", "staff", "", "", denied),
        ("rud", "POST", "Staff", "", insert, denied),
        ("a", "POST", "Staff", "", insert, "201"),
        ("rad", "PUT", row, any, "{}", denied),
        ("u", "PUT", row, any, "{}", "204"),
        ("u", "PATCH", row, any, "{}", "204"),
        ("u", "PUT", row, "", "{}", denied),
        ("a", "MERGE", row, "", "{}", denied),
        ("au", "PUT", row, "", "{}", "204"),
        ("au", "PATCH", row, "", "{}", "204"),
        ("rau", "DELETE", row, any, "", denied),
        ("d", "DELETE", row, any, "", "204"),
        ("raud", "GET", "Other()", "", "", "403 AuthorizationFailure"),
        ("raud", "GET", "Tables", "", "", "403 AuthorizationFailure"),
        ("raud", "DELETE", "Tables('Staff')", "", "", "403 AuthorizationFailure"),
        ("raud", "POST", "Tables", "", r#"{"TableName":"X1x"}"#, "403 AuthorizationFailure"),
        ("raud", "GET", "Staff?comp=acl", "", "", "403 AuthorizationFailure"),
        ("raud", "GET", "?restype=service&comp=properties", "", "", "403 AuthorizationFailure"),
    ];
    for (letters, method, target, headers, body, expected) in requests {
        let sas = table_sas(&[("sp", letters), END]);
        let answer = send_with(&address, &sas, method, target, headers, body).await;
        assert_answer(&answer, expected, &format!("{letters} {method} {target}"));
    }
}

#[tokio::test]
async fn a_changed_or_unsigned_member_is_refused() {
    let (address, _stop) = start_with_rows().await;
    let members = [("sp", "r"), ("st", "2026-01-01"), END, ("spk", "a"), ("epk", "b")];
    let good = table_sas(&members);
    assert_answer(&send_with(&address, &good, "GET", "Staff", "", "").await, "200", "as signed");
    let changes = [
        ("sp", "raud"),
        ("st", "2025-01-01"),
        ("se", "2027-02-01T00:00:00Z"),
        ("spk", ""),
        ("epk", "z"),
        ("tn", "Other"),
        ("sv", "2018-03-28"),
    ];
    for (name, value) in changes {
        let old = good.split('&').find(|m| m.starts_with(&format!("{name}="))).unwrap();
        let changed = good.replace(old, &format!("{name}={}", encoded(value)));
        let answer = send_with(&address, &changed, "GET", "Staff", "", "").await;
        assert_answer(&answer, "403 AuthenticationFailed", name);
    }
    for added in ["sip=127.0.0.1", "si=all", "erk=z", "spr=https,http"] {
        let answer = send_with(&address, &format!("{added}&{good}"), "GET", "Staff", "", "").await;
        assert_answer(&answer, "403 AuthenticationFailed", added);
    }
    let old = table_sas(&members).replace("sv=%32%30%31%39", "sv=2012");
    assert_answer(&send_with(&address, &old, "GET", "Staff", "", "").await, "403", "old version");
    // Nothing of the body is awaited before the signature is checked.
    let unsent = format!(
        "POST {BASE}/Staff?{good}x HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4000000\r\nConnection: close\r\n\r\n"
    );
    assert_answer(&raw(&address, &unsent).await, "403 AuthenticationFailed", "unsent body");
}

#[tokio::test]
async fn a_signature_has_times_addresses_and_protocols() {
    let (address, _stop) = start_with_rows().await;
    // The server's time is 2026-01-02T03:04:05Z, and a client's clock may be 15 minutes ahead.
    let cases: [(&[(&str, &str)], &str); 18] = [
        (&[("se", "2026-01-02T03:04:06Z")], "200"),
        (&[("se", "2026-01-02T03:04:05Z")], "403 AuthenticationFailed"),
        (&[("se", "2026-01-02T03:04Z")], "403 AuthenticationFailed"),
        (&[("se", "2026-01-03")], "200"),
        (&[("se", "2026-01-02")], "403 AuthenticationFailed"),
        (&[("se", "soon")], "403 AuthenticationFailed"),
        (&[], "403 AuthenticationFailed"),
        (&[("st", "2026-01-02T03:19:05Z"), END], "200"),
        (&[("st", "2026-01-02T03:19:06Z"), END], "403 AuthenticationFailed"),
        (&[("st", "2026-01-02T03:04Z"), END], "200"),
        (&[("st", "2026-01-03"), END], "403 AuthenticationFailed"),
        (&[("sip", "127.0.0.1"), END], "200"),
        (&[("sip", "127.0.0.0-127.0.0.2"), END], "200"),
        (&[("sip", "127.0.0.2-127.0.0.9"), END], "403 AuthorizationSourceIPMismatch"),
        (&[("sip", "here"), END], "403 AuthenticationFailed"),
        (&[("spr", "https,http"), END], "200"),
        (&[("spr", "https"), END], "403 AuthorizationProtocolMismatch"),
        (&[("srk", "1"), END], "403 AuthenticationFailed"),
    ];
    for (members, expected) in cases {
        let sas = table_sas(&[&[("sp", "r")], members].concat());
        let answer = send_with(&address, &sas, "GET", "Staff", "", "").await;
        assert_answer(&answer, expected, &format!("{members:?}"));
    }
}

/// Returns the keys in the JSON of a page.
fn keys(answer: &str) -> Vec<String> {
    let json = answer.split_once("\r\n\r\n").unwrap().1;
    let page: serde_json::Value = serde_json::from_str(json).unwrap();
    let key = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = page["value"].as_array().unwrap().iter();
    rows.map(|row| key(row, "PartitionKey") + &key(row, "RowKey")).collect()
}

#[tokio::test]
async fn a_range_bounds_queries_points_writes_and_continuations() {
    let (address, _stop) = start_with_rows().await;
    let range = |from: (&str, &str), to: (&str, &str)| {
        let ends = [("spk", from.0), ("srk", from.1), ("epk", to.0), ("erk", to.1)];
        table_sas(&[&[("sp", "raud"), END], &ends[..]].concat())
    };
    let some = range(("b", "2"), ("\u{1f600}", "1"));
    let cases = [
        (range(("b", "1"), ("b", "1")), vec!["b1"]),
        (range(("b", "2"), ("", "")), vec!["b2", "c1", "\u{1f600}1", "\u{e000}1"]),
        (range(("", ""), ("b", "1")), vec!["a1", "b1"]),
        (range(("b", ""), ("b", "")), vec!["b1", "b2"]),
        (some.clone(), vec!["b2", "c1", "\u{1f600}1"]),
        (range(("\u{e000}", ""), ("", "")), vec!["\u{e000}1"]),
    ];
    for (sas, expected) in &cases {
        let page = send_with(&address, sas, "GET", "Staff", "", "").await;
        assert_eq!(keys(&page), *expected, "{sas}");
    }
    // A filter, or the start of another page, cannot leave the range.
    for target in [
        "Staff?$filter=PartitionKey%20eq%20'a'",
        "Staff?$filter=PartitionKey%20eq%20'zz'%20or%20RowKey%20eq%20'0'",
        "Staff?NextPartitionKey=1!4!7oCA&NextRowKey=1!4!MQ--",
    ] {
        assert_eq!(keys(&send_with(&address, &some, "GET", target, "", "").await), [""; 0]);
    }
    let before = "Staff?NextPartitionKey=1!4!YQ--&NextRowKey=1!4!MQ--";
    let page = send_with(&address, &some, "GET", before, "", "").await;
    assert_eq!(keys(&page), ["b2", "c1", "\u{1f600}1"]);
    // A page that ends at the end of the range does not say which key follows it.
    let full = send_with(&address, &cases[2].0, "GET", "Staff?$top=2", "", "").await;
    assert_eq!(keys(&full), ["a1", "b1"]);
    assert!(!full.contains("x-ms-continuation"), "{full}");
    let first = send_with(&address, &some, "GET", "Staff?$top=1", "", "").await;
    assert!(first.contains("x-ms-continuation-nextpartitionkey: 1!4!Yw--"), "{first}");
    for (row, expected) in
        [("a',RowKey='1", "403"), ("b',RowKey='1", "403"), ("b',RowKey='2", "200")]
    {
        let target = format!("Staff(PartitionKey='{row}')");
        let answer = send_with(&address, &some, "GET", &target, "", "").await;
        assert_answer(&answer, expected, row);
        let written = if expected == "200" { "204" } else { "403 AuthorizationFailure" };
        let answer = send_with(&address, &some, "PUT", &target, "", "{}").await;
        assert_answer(&answer, written, row);
    }
    let outside = r#"{"PartitionKey":"a","RowKey":"9"}"#;
    let answer = send_with(&address, &some, "POST", "Staff", "", outside).await;
    assert_answer(&answer, "403 AuthorizationFailure", "insert");
}

#[tokio::test]
async fn each_operation_of_a_batch_is_authorized() {
    let (address, _stop) = start_with_rows().await;
    let inside = ("PUT", "Staff(PartitionKey='b',RowKey='1')", "", r#"{"A":1}"#);
    let outside = ("PUT", "Staff(PartitionKey='b',RowKey='3')", "", r#"{"A":1}"#);
    let elsewhere = ("PUT", "Other(PartitionKey='b',RowKey='1')", "", "{}");
    let delete = ("DELETE", "Staff(PartitionKey='b',RowKey='2')", "If-Match: *\r\n", "");
    let ends = [("spk", "b"), ("srk", "1"), ("epk", "b"), ("erk", "2")];
    let sas = table_sas(&[&[("sp", "au"), END], &ends[..]].concat());
    for (operations, expected) in [
        (vec![inside, outside], "403 AuthorizationFailure"),
        (vec![inside, delete], "403 AuthorizationPermissionMismatch"),
        (vec![elsewhere], "403 AuthorizationFailure"),
        (vec![inside], "202"),
    ] {
        let body = batch_body(&address, &operations);
        let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
        let request = format!(
            "POST {BASE}/$batch?{sas} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = raw(&address, &request).await;
        assert_answer(&answer, expected, &format!("{operations:?}"));
        let row = send(&address, "GET", &format!("{BASE}/{}", inside.1), JSON, "").await;
        assert_eq!(row.contains(r#""A":1"#), expected == "202", "a refused batch changes nothing");
    }
}

#[tokio::test]
async fn a_signature_for_an_account_permits_kinds_of_resources() {
    let (address, _stop) = start_with_rows().await;
    let row = "Staff(PartitionKey='b',RowKey='1')";
    let denied = "403 AuthorizationPermissionMismatch";
    let other_kind = "403 AuthorizationResourceTypeMismatch";
    let properties = "?restype=service&comp=properties";
    let requests = [
        ("o", "r", "GET", row, "", "200"),
        ("sc", "r", "GET", row, "", other_kind),
        ("o", "wdlacu", "GET", "Staff()", "", denied),
        ("o", "au", "PUT", row, "{}", "204"),
        ("o", "a", "PUT", row, "{}", denied),
        ("c", "l", "GET", "Tables", "", "200"),
        ("c", "rwdacu", "GET", "Tables", "", denied),
        ("so", "l", "GET", "Tables", "", other_kind),
        ("c", "c", "POST", "Tables", r#"{"TableName":"New"}"#, "201"),
        ("c", "w", "POST", "Tables", r#"{"TableName":"Newer"}"#, "201"),
        ("c", "rdlau", "POST", "Tables", r#"{"TableName":"Newest"}"#, denied),
        ("c", "rwlacu", "DELETE", "Tables('New')", "", denied),
        ("c", "d", "DELETE", "Tables('New')", "", "204"),
        ("s", "r", "GET", properties, "", "200"),
        ("co", "r", "GET", properties, "", other_kind),
        ("s", "r", "PUT", properties, "<StorageServiceProperties />", denied),
        ("sco", "rwdlacu", "GET", "Staff?comp=acl", "", "403 AuthorizationFailure"),
    ];
    for (resources, letters, method, target, body, expected) in requests {
        for version in ["2019-02-02", "2023-11-03"] {
            // A table is made and deleted once.
            if version > "2020" && (expected == "201" || method == "DELETE") {
                continue;
            }
            let members = [("ss", "bt"), ("srt", resources), ("sp", letters), END];
            let sas = account_sas(version, &members);
            let answer = send_with(&address, &sas, method, target, "", body).await;
            assert_answer(&answer, expected, &format!("{resources} {letters} {method} {target}"));
        }
    }
    let blobs = account_sas("2019-02-02", &[("ss", "bq"), ("srt", "sco"), ("sp", "r"), END]);
    let answer = send_with(&address, &blobs, "GET", row, "", "").await;
    assert_answer(&answer, "403 AuthorizationServiceMismatch", "another service");
}

#[tokio::test]
async fn the_librarys_own_signatures_are_accepted() {
    let (address, _stop) = start_with_rows().await;
    let end = OffsetDateTime::from(now()) + Duration::hours(1);
    let key = AccountKey::emulator();
    let staff = TableSas::new("Staff").permissions(TablePermissions::READ).expires(end);
    let range = staff.allow_http().ip("127.0.0.1").keys_from("b", Some("2")).keys_to("c", None);
    let token = range.clone().sign(&key).unwrap();
    let page = send_with(&address, token.as_query(), "GET", "Staff", "", "").await;
    assert_eq!(keys(&page), ["b2", "c1"]);
    let token = range.https_only().sign(&key).unwrap();
    let page = send_with(&address, token.as_query(), "GET", "Staff", "", "").await;
    assert_answer(&page, "403 AuthorizationProtocolMismatch", "https");
    let account = AccountSas::new(AccountPermissions::LIST, ResourceTypes::CONTAINER);
    let token = account.expires(end).allow_http().sign(&key).unwrap();
    let list = send_with(&address, token.as_query(), "GET", "Tables", "", "").await;
    assert!(list.contains(r#"{"TableName":"Staff"}"#), "{list}");
    let foreign = AccountKey::new("devstoreaccount1", "AAECAwQ=").unwrap();
    let token = TableSas::new("Staff").permissions(TablePermissions::READ).expires(end);
    let token = token.allow_http().sign(&foreign).unwrap();
    let page = send_with(&address, token.as_query(), "GET", "Staff", "", "").await;
    assert_answer(&page, "403 AuthenticationFailed", "another key");
}

#[tokio::test]
async fn the_key_may_do_everything_whatever_the_address_says() {
    let (address, _stop) = start_with_rows().await;
    let sas = table_sas(&[("sp", "r"), END]);
    let target = format!("{BASE}/Tables?{sas}");
    let listed = send(&address, "GET", &target, JSON, "").await;
    assert!(listed.starts_with("HTTP/1.1 200 "), "{listed}");
    let target = format!("{BASE}/Staff?{sas}");
    let forged = "Authorization: SharedKeyLite devstoreaccount1:AAAA\r\n";
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {address}\r\n{JSON}{forged}Connection: close\r\n\r\n"
    );
    assert_answer(&raw(&address, &request).await, "403 AuthenticationFailed", "forged");
}

/// Sets the stored policies of `Staff`: names, and the elements of each.
async fn set_policies(address: &str, policies: &[(&str, &str)]) -> String {
    let one = |(id, elements): &(&str, &str)| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{elements}</AccessPolicy></SignedIdentifier>"
        )
    };
    let list: String = policies.iter().map(one).collect();
    put_policies(address, &format!("<SignedIdentifiers>{list}</SignedIdentifiers>")).await
}

async fn put_policies(address: &str, body: &str) -> String {
    signed(address, "PUT", "/devstoreaccount1/Staff", "comp=acl", body).await
}

/// Sends a request whose address has a `comp`, which is signed.
async fn signed(address: &str, method: &str, path: &str, query: &str, body: &str) -> String {
    let date = entable_azure::wire::http_date_text(now());
    let comp = query.split('&').find(|option| option.starts_with("comp=")).unwrap();
    let signature = hmac(&format!("{date}\n/devstoreaccount1{path}?{comp}"));
    let request = format!(
        "{method} {path}?{query} HTTP/1.1\r\nHost: {address}\r\nx-ms-date: {date}\r\nConnection: close\r\n\
         Authorization: SharedKeyLite devstoreaccount1:{signature}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(address, &request).await
}

#[tokio::test]
async fn a_stored_policy_decides_what_its_signatures_permit() {
    let (address, _stop) = start_with_rows().await;
    let get = async |members: &[(&str, &str)]| {
        send_with(&address, &table_sas(members), "GET", "Staff", "", "").await
    };
    let named = [("si", "readers")];
    let refused = "403 AuthenticationFailed";
    assert_answer(&get(&named).await, refused, "no such policy");
    let whole = "<Expiry>2026-02-01T00:00:00Z</Expiry><Permission>r</Permission>";
    assert_answer(&set_policies(&address, &[("readers", whole)]).await, "204", "set");
    assert_answer(&get(&named).await, "200", "named");
    assert_answer(&get(&[("si", "readers"), ("sp", "r")]).await, refused, "permission twice");
    assert_answer(&get(&[("si", "readers"), END]).await, refused, "end twice");
    assert_answer(&get(&[("si", "Readers")]).await, refused, "another case");
    set_policies(&address, &[("readers", "<Permission>r</Permission>")]).await;
    assert_answer(&get(&named).await, refused, "no end");
    assert_answer(&get(&[("si", "readers"), END]).await, "200", "an end of its own");
    set_policies(&address, &[("readers", "<Expiry>2026-02-01</Expiry><Permission>a</Permission>")])
        .await;
    assert_answer(&get(&named).await, "403 AuthorizationPermissionMismatch", "other letters");
    set_policies(&address, &[("readers", "<Expiry>2026-01-01</Expiry><Permission>r</Permission>")])
        .await;
    assert_answer(&get(&named).await, refused, "expired");
    set_policies(
        &address,
        &[(
            "readers",
            "<Start>2026-01-03</Start><Expiry>2026-02-01</Expiry><Permission>r</Permission>",
        )],
    )
    .await;
    assert_answer(&get(&named).await, refused, "not yet");
    // A table of the same name has no policy of its predecessor.
    set_policies(&address, &[("readers", whole)]).await;
    assert_answer(&get(&named).await, "200", "named");
    send(&address, "DELETE", &format!("{BASE}/Tables('Staff')"), JSON, "").await;
    send(&address, "POST", &format!("{BASE}/Tables"), JSON, r#"{"TableName":"Staff"}"#).await;
    assert_answer(&get(&named).await, refused, "a new table");
}

#[tokio::test]
async fn policies_are_kept_as_the_service_writes_them() {
    let (address, _stop) = start_with_rows().await;
    let get = async || signed(&address, "GET", "/devstoreaccount1/Staff", "comp=acl", "").await;
    let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>";
    assert!(get().await.ends_with(&format!("{xml}</SignedIdentifiers>")));
    let elements = "<Start>2026-01-01T00:00:00Z</Start><Permission>raud</Permission>";
    set_policies(&address, &[("a&amp;b", elements), ("empty", "")]).await;
    let kept = "<SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2026-01-01T00:00:00.0000000Z</Start><Permission>raud</Permission></AccessPolicy></SignedIdentifier>\
                <SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>";
    let found = get().await;
    assert!(found.ends_with(&format!("{xml}{kept}")), "{found}");
    let names = ["1", "2", "3", "4", "5", "6"].map(|name| (name, ""));
    let long = "n".repeat(65);
    for (policies, what) in [
        (&names[..], "six"),
        (&[("1", ""), ("1", "")], "twice"),
        (&[(&*long, "")], "long"),
        (&[("", "")], "without a name"),
        (&[("1", "<Permission>x</Permission>")], "letter"),
        (&[("1", "<Start>soon</Start>")], "time"),
    ] {
        let answer = set_policies(&address, policies).await;
        assert_answer(&answer, "400 InvalidXmlDocument", what);
    }
    for body in ["<a/>", "<SignedIdentifiers><SignedIdentifier>", "text"] {
        assert_answer(&put_policies(&address, body).await, "400 InvalidXmlDocument", body);
    }
    assert!(get().await.ends_with(kept), "a refused list changes nothing");
    assert_answer(&set_policies(&address, &names[..5]).await, "204", "five");
    assert_answer(&put_policies(&address, "<SignedIdentifiers />").await, "204", "none");
    assert!(get().await.ends_with(&format!("{xml}</SignedIdentifiers>")));
    let missing = signed(&address, "GET", "/devstoreaccount1/Missing", "comp=acl", "").await;
    assert_answer(&missing, "404 TableNotFound", "missing");
}

#[tokio::test]
async fn properties_are_kept_by_section_and_stats_are_of_the_secondary() {
    let (address, _stop) = start_with_rows().await;
    let service = "restype=service&comp=properties";
    let root = "/devstoreaccount1/";
    let first = signed(&address, "GET", root, service, "").await;
    assert!(first.contains("<Logging><Version>1.0</Version>") && first.contains("<Cors></Cors>"));
    let body = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete></Logging><Cors /></StorageServiceProperties>";
    assert_answer(&signed(&address, "PUT", root, service, body).await, "202", "set");
    let second = signed(&address, "GET", root, service, "").await;
    assert!(second.contains("<Delete>true</Delete></Logging><HourMetrics><Version>"), "{second}");
    let cors =
        "<StorageServiceProperties><Cors><CorsRule></CorsRule></Cors></StorageServiceProperties>";
    for (body, expected) in [("", "400 InvalidXmlDocument"), (cors, "501 NotImplemented")] {
        assert_answer(&signed(&address, "PUT", root, service, body).await, expected, body);
    }
    let kept = |days: &str| {
        format!(
            "<StorageServiceProperties><MinuteMetrics><RetentionPolicy><Enabled>true</Enabled>{days}\
             </RetentionPolicy></MinuteMetrics></StorageServiceProperties>"
        )
    };
    for days in
        ["<Days>366</Days>", "<Days>0</Days>", "<Days></Days>", "<Days>7", "<Days>-1</Days>"]
    {
        let refused = signed(&address, "PUT", root, service, &kept(days)).await;
        assert_answer(&refused, "400 InvalidXmlDocument", days);
    }
    assert_eq!(
        signed(&address, "GET", root, service, "").await.split_once("<Cors>").unwrap().1,
        second.split_once("<Cors>").unwrap().1
    );
    let year = signed(&address, "PUT", root, service, &kept("<Days>365</Days>")).await;
    assert_answer(&year, "202", "a year");
    let stats = "restype=service&comp=stats";
    let secondary = "/devstoreaccount1-secondary/";
    let found = signed(&address, "GET", secondary, stats, "").await;
    let time = "<LastSyncTime>Fri, 02 Jan 2026 03:04:05 GMT</LastSyncTime>";
    assert!(found.contains("<Status>live</Status>") && found.contains(time), "{found}");
    assert_answer(&signed(&address, "GET", root, stats, "").await, "400", "primary");
    let read = send(&address, "GET", "/devstoreaccount1-secondary/Staff()", JSON, "").await;
    assert_answer(&read, "200", "read from the secondary");
    let body = r#"{"PartitionKey":"x","RowKey":"1"}"#;
    let write = send(&address, "POST", "/devstoreaccount1-secondary/Staff", JSON, body).await;
    assert_answer(&write, "403 WriteOperationNotSupportedOnSecondary", "write to the secondary");
}

#[tokio::test]
async fn settings_in_a_file_outlive_the_process_and_not_their_table() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("rows.db"), directory.path().join("copy.db"));
    let rows = Embedded::open(&path).unwrap();
    rows.tables(TableRequest::Create("Staff")).await.unwrap();
    rows.tables(TableRequest::Create("Other")).await.unwrap();
    assert!(rows.set_settings(Some("Missing"), "x").await.unwrap_err().is_not_found());
    for (table, text) in [(Some("STAFF"), "a"), (Some("Staff"), "b"), (None, "c")] {
        rows.set_settings(table, text).await.unwrap();
    }
    rows.close().await.unwrap();
    drop(rows);
    let rows = Embedded::open(&path).unwrap();
    rows.backup(&copy).await.unwrap();
    let snapshot = rows.snapshot().await.unwrap();
    for rows in [&rows as &dyn Backend, &Embedded::open(&copy).unwrap(), &*snapshot.rows()] {
        assert_eq!(rows.settings(Some("staff")).await.unwrap().as_deref(), Some("b"));
        assert_eq!(rows.settings(Some("Other")).await.unwrap(), None);
        assert_eq!(rows.settings(None).await.unwrap().as_deref(), Some("c"));
    }
    rows.tables(TableRequest::Delete("Staff")).await.unwrap();
    assert!(rows.settings(Some("Staff")).await.unwrap_err().is_not_found());
    rows.tables(TableRequest::Create("Staff")).await.unwrap();
    assert_eq!(rows.settings(Some("Staff")).await.unwrap(), None);
    rows.set_settings(None, "").await.unwrap();
    assert_eq!(rows.settings(None).await.unwrap(), None);
    let read_only = ReadOnly::around(rows);
    assert!(read_only.set_settings(None, "x").await.unwrap_err().is_denied());
}
