//! Corners of the protocol that SDKs and their tests touch.

use super::*;

const BASE: &str = "/devstoreaccount1";

async fn start_with_table() -> (String, oneshot::Sender<()>) {
    let (address, stop, _running) = start().await;
    let tables = format!("{BASE}/Tables");
    let made = send(&address, "POST", &tables, JSON, r#"{"TableName":"Staff"}"#).await;
    assert!(made.starts_with("HTTP/1.1 201 "));
    (address, stop)
}

async fn insert(address: &str, body: &str) -> String {
    send(address, "POST", &format!("{BASE}/Staff"), JSON, body).await
}

#[tokio::test]
async fn versions_are_dates_of_releases() {
    let (address, _stop) = start_with_table().await;
    for (version, status) in [
        ("2019-02-02", "200"),
        ("2013-08-15", "200"),
        ("2026-11-05", "200"),
        ("2012-02-12", "400"),
        ("2099-01-01", "400"),
        ("2019-13-02", "400"),
        ("2019-02-02T00:00Z", "400"),
        ("newest", "400"),
    ] {
        let headers = format!("{JSON}x-ms-version: {version}\r\nx-ms-client-request-id: me\r\n");
        let answer = send(&address, "GET", &format!("{BASE}/Tables"), &headers, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{version}: {answer}");
        let echoed = if status == "200" { version } else { "2019-02-02" };
        assert!(has_line(&answer, &format!("x-ms-version: {echoed}")), "{answer}");
        assert!(has_line(&answer, "x-ms-client-request-id: me"), "{answer}");
        assert!(answer.to_ascii_lowercase().contains("\r\nx-ms-request-id: "), "{answer}");
        assert_eq!(answer.contains("InvalidHeaderValue"), status == "400", "{answer}");
    }
}

#[tokio::test]
async fn a_batch_reads_one_entity_alone() {
    let (address, _stop) = start_with_table().await;
    insert(&address, r#"{"PartitionKey":"p","RowKey":"r","A":5}"#).await;
    let read = async |parts: &[(&str, &str)]| {
        let mut body = String::new();
        for (method, target) in parts {
            body += &format!(
                "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {method} http://{address}{BASE}/{target} HTTP/1.1\r\n{JSON}\r\n"
            );
        }
        body += "--b--\r\n";
        let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
        send(&address, "POST", &format!("{BASE}/$batch"), headers, &body).await
    };
    let row = "Staff(PartitionKey='p',RowKey='r')";
    let found = read(&[("GET", row)]).await;
    assert!(found.starts_with("HTTP/1.1 202 "), "{found}");
    assert!(found.contains("\r\nHTTP/1.1 200 OK\r\n") && found.contains(r#""A":5}"#), "{found}");
    assert!(!found.contains("changeset"), "{found}");
    let missing = read(&[("GET", "Staff(PartitionKey='p',RowKey='x')")]).await;
    assert!(missing.starts_with("HTTP/1.1 202 "), "{missing}");
    assert!(missing.contains("\r\nHTTP/1.1 404 Not Found\r\n"), "{missing}");
    for parts in [&[("GET", row), ("GET", row)][..], &[("GET", "Staff()")], &[("DELETE", row)]] {
        let refused = read(parts).await;
        assert!(refused.starts_with("HTTP/1.1 400 "), "{parts:?}: {refused}");
    }
    // A read inside a changeset is refused with the changeset.
    let mixed = send_batch(&address, &[("GET", row, "", "")]).await;
    assert!(mixed.contains("\r\nHTTP/1.1 4"), "{mixed}");
}

#[tokio::test]
async fn values_are_read_as_leniently_as_the_service_reads_them() {
    let (address, _stop) = start_with_table().await;
    let inserted = insert(
        &address,
        r#"{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Boolean","A":"TRUE","B@odata.type":"Edm.Boolean","B":"False","N@odata.type":"Edm.Int64","N":null}"#,
    )
    .await;
    assert!(inserted.ends_with(r#""A":true,"B":false}"#), "{inserted}");
    for (key, code) in [
        ("7", "InvalidInput"),
        ("true", "InvalidInput"),
        ("null", "PropertiesNeedValue"),
        (r#""a/b""#, "OutOfRangeInput"),
        (r#""a\u0001""#, "OutOfRangeInput"),
    ] {
        let refused = insert(&address, &format!(r#"{{"PartitionKey":{key},"RowKey":"x"}}"#)).await;
        assert!(refused.starts_with("HTTP/1.1 400 "), "{key}: {refused}");
        assert!(refused.contains(&format!(r#""code":"{code}""#)), "{key}: {refused}");
    }
    let typed = r#"{"PartitionKey":"p","RowKey@odata.type":"Edm.Guid","RowKey":"00000000-0000-0000-0000-000000000001"}"#;
    assert!(insert(&address, typed).await.contains(r#""code":"InvalidInput""#));
    // The key of the address counts, whatever the body has.
    let row = format!("{BASE}/Staff(PartitionKey='p',RowKey='s')");
    let put = send(&address, "PUT", &row, JSON, r#"{"PartitionKey":7,"RowKey":true}"#).await;
    assert!(put.starts_with("HTTP/1.1 204 "), "{put}");
    for (key, code, text) in [
        ("a%2Fb", "InvalidInput", "Bad Request - Error in query syntax."),
        ("a%5Cb", "InvalidInput", "Bad Request - Error in query syntax."),
        ("a%3Fb", "OutOfRangeInput", "One of the request inputs is out of range."),
        ("a%23b", "OutOfRangeInput", "One of the request inputs is out of range."),
    ] {
        let row = format!("{BASE}/Staff(PartitionKey='p',RowKey='{key}')");
        let refused = send(&address, "PUT", &row, JSON, "{}").await;
        assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains(code), "{key}: {refused}");
        assert!(refused.contains(text), "{key}: {refused}");
    }
}

#[tokio::test]
async fn the_metadata_of_a_selection_echoes_the_clients_text() {
    let (address, _stop) = start_with_table().await;
    insert(&address, r#"{"PartitionKey":"p","RowKey":"r","A":5}"#).await;
    let page =
        send(&address, "GET", &format!("{BASE}/Staff()?$select=A,%20RowKey"), JSON, "").await;
    assert!(page.contains("$metadata#Staff&$select=A, RowKey\""), "{page}");
    let all = send(&address, "GET", &format!("{BASE}/Staff()?$select=*"), JSON, "").await;
    assert!(all.contains("$metadata#Staff\"") && all.contains(r#""A":5"#), "{all}");
}

#[tokio::test]
async fn operators_and_constants_of_filters_are_lower_case() {
    let (address, _stop) = start_with_table().await;
    insert(&address, r#"{"PartitionKey":"p","RowKey":"r","A":true}"#).await;
    for (filter, status) in [
        ("A%20eq%20true", "200"),
        ("A%20eq%20True", "400"),
        ("A%20Eq%20true", "400"),
        ("A%20eq%20true%20Or%20A", "400"),
    ] {
        let target = format!("{BASE}/Staff()?$filter={filter}");
        let page = send(&address, "GET", &target, JSON, "").await;
        assert!(page.starts_with(&format!("HTTP/1.1 {status} ")), "{filter}: {page}");
    }
}

#[tokio::test]
async fn a_failed_batch_names_the_preference_of_one_operation_too_many() {
    let (address, _stop) = start_with_table().await;
    let preferred = "Prefer: return-no-content\r\n";
    let bodies: Vec<String> =
        (0..101).map(|n| format!(r#"{{"PartitionKey":"p","RowKey":"{n}"}}"#)).collect();
    let inserts: Vec<_> = bodies.iter().map(|body| ("POST", "Staff", preferred, &**body)).collect();
    let refused = send_batch(&address, &inserts).await;
    assert!(refused.contains(r#""value":"99:The batch request operation exceeds"#), "{refused}");
    assert!(has_line(&refused, "Preference-Applied: return-no-content"), "{refused}");
    let missing = ("POST", "Missing", preferred, r#"{"PartitionKey":"p","RowKey":"1"}"#);
    let missing = send_batch(&address, &[missing]).await;
    assert!(missing.contains(r#""value":"0:The table specified does not exist."#), "{missing}");
    assert!(!missing.contains("Preference-Applied"), "{missing}");
    let below = send(&address, "POST", &format!("{BASE}/Staff/$batch"), JSON, "").await;
    assert!(below.starts_with("HTTP/1.1 415 ") && below.contains("MediaTypeNotSupported"));
    // A value that is too large is found while the operation is carried out, so one alone has no position.
    let long = format!(r#"{{"PartitionKey":"p","RowKey":"1","A":"{}"}}"#, "x".repeat(33_000));
    let alone = send_batch(&address, &[("POST", "Staff", "", &long)]).await;
    assert!(alone.contains(r#""value":"The property value exceeds"#), "{alone}");
    let second = send_batch(&address, &[inserts[0], ("POST", "Staff", "", &long)]).await;
    assert!(second.contains(r#""value":"1:The property value exceeds"#), "{second}");
}

#[tokio::test]
async fn what_a_stored_row_refuses_is_found_in_execution() {
    let (address, _stop) = start_with_table().await;
    let properties: String = (0..252).map(|n| format!(r#","P{n}":1"#)).collect();
    insert(&address, &format!(r#"{{"PartitionKey":"p","RowKey":"r"{properties}}}"#)).await;
    let row = "Staff(PartitionKey='p',RowKey='r')";
    let merge = ("MERGE", row, "If-Match: *\r\n", r#"{"One":1}"#);
    let alone = send_batch(&address, &[merge]).await;
    assert!(alone.contains(r#""value":"The entity contains more properties"#), "{alone}");
    let other = ("POST", "Staff", "", r#"{"PartitionKey":"p","RowKey":"s"}"#);
    let second = send_batch(&address, &[other, merge]).await;
    assert!(second.contains(r#""value":"1:The entity contains more properties"#), "{second}");
    // An entity that is too large by itself is refused before.
    let whole = format!(r#"{{"PartitionKey":"p","RowKey":"t","One":1{properties}}}"#);
    let before = send_batch(&address, &[("POST", "Staff", "", &whole)]).await;
    assert!(before.contains(r#""value":"0:The entity contains more properties"#), "{before}");
}

#[tokio::test]
async fn tables_are_listed_by_filter_and_number_and_asked_for_one_by_one() {
    let (address, _stop) = start_with_table().await;
    for name in ["Alpha", "Beta", "Gamma"] {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        send(&address, "POST", &format!("{BASE}/Tables"), JSON, &body).await;
    }
    let bare = "Accept: application/json;odata=nometadata\r\n";
    let get =
        async |target: &str| send(&address, "GET", &format!("{BASE}/{target}"), bare, "").await;
    let page =
        get("Tables?$filter=TableName%20gt%20'Alpha'%20and%20TableName%20lt%20'Gamma'").await;
    assert!(page.ends_with(r#"{"value":[{"TableName":"Beta"}]}"#), "{page}");
    let first = get("Tables?$top=2").await;
    assert!(first.ends_with(r#"{"value":[{"TableName":"Alpha"},{"TableName":"Beta"}]}"#));
    assert!(has_line(&first, "x-ms-continuation-NextTableName: gamma"), "{first}");
    let rest = get("Tables?$top=2&NextTableName=gamma").await;
    assert!(rest.ends_with(r#"{"value":[{"TableName":"Gamma"},{"TableName":"Staff"}]}"#), "{rest}");
    assert!(get("Tables('STAFF')").await.ends_with(r#"{"TableName":"Staff"}"#));
    let missing = get("Tables('Delta')").await;
    assert!(missing.starts_with("HTTP/1.1 404 ") && missing.contains("ResourceNotFound"));
}

#[tokio::test]
async fn an_insert_whose_answer_has_no_known_form_does_not_happen() {
    let (address, _stop) = start_with_table().await;
    let atom = "Accept: application/atom+xml\r\n";
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let staff = format!("{BASE}/Staff");
    let refused = send(&address, "POST", &staff, atom, body).await;
    assert!(refused.starts_with("HTTP/1.1 415 "), "{refused}");
    let operation = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n\
         POST {staff} HTTP/1.1\r\n{atom}\r\n{body}\r\n--c--\r\n--b--\r\n"
    );
    let mixed = "Content-Type: multipart/mixed; boundary=b\r\n";
    let refused = send(&address, "POST", &format!("{BASE}/$batch"), mixed, &operation).await;
    assert!(refused.contains("\r\nHTTP/1.1 415 "), "{refused}");
    let rows = send(&address, "GET", &format!("{BASE}/Staff()"), JSON, "").await;
    assert!(rows.ends_with("\"value\":[]}"), "{rows}");
    // Without content there is nothing to write.
    let silent = format!("{atom}Prefer: return-no-content\r\n");
    let made = send(&address, "POST", &staff, &silent, body).await;
    assert!(made.starts_with("HTTP/1.1 204 "), "{made}");
}
