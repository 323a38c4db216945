//! Tests servers that do not answer as the Table service does, on real sockets.

use std::{
    fmt::Write,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use entable::{
    Azure, Batch, Condition, Error, Filter, Operation, Row,
    backend::{Backend, ScanRequest, TableRequest},
};

use crate::{
    emulator::{apply, read, row},
    raw_server::{Manner, http, says, server},
    scripted_http::KEY,
};

fn insert() -> Operation {
    Operation::insert(row("p", "r", "x"))
}

fn two() -> Batch {
    let mut batch = Batch::new("Staff");
    batch.push(insert()).unwrap();
    batch.push(Operation::delete("p", "s", Condition::Any).unwrap()).unwrap();
    batch
}

async fn scan(azure: &Azure) -> Result<usize, Error> {
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    azure.scan(scan).await.map(|page| page.rows.len())
}

/// Every kind of request fails, within the time, without the key in what it says; a write is not
/// said to have been refused where that is not known.
async fn nothing_is_believed(name: &str, manner: Manner, write_is_open: bool) {
    let (azure, asked) = server(manner).await;
    let begun = Instant::now();
    let reads = [
        read(&azure, "Staff", "p", "r").await.map(drop).unwrap_err(),
        scan(&azure).await.map(drop).unwrap_err(),
        azure.tables(TableRequest::List { from: None, within: None }).await.map(drop).unwrap_err(),
        azure.access_policies("Staff").await.map(drop).unwrap_err(),
    ];
    let delete = Operation::delete("p", "r", Condition::Any).unwrap();
    let writes = [
        apply(&azure, "Staff", insert()).await.map(drop).unwrap_err(),
        apply(&azure, "Staff", Operation::insert_or_merge(row("p", "r", "x")))
            .await
            .map(drop)
            .unwrap_err(),
        apply(&azure, "Staff", delete).await.map(drop).unwrap_err(),
        azure.apply(&two()).await.map(drop).unwrap_err(),
        azure.tables(TableRequest::Create("Staff")).await.map(drop).unwrap_err(),
        azure.tables(TableRequest::Delete("Staff")).await.map(drop).unwrap_err(),
        azure.set_access_policies("Staff", &[]).await.unwrap_err(),
    ];
    assert!(begun.elapsed() < Duration::from_secs(15), "{name}: {:?}", begun.elapsed());
    assert_eq!(asked.load(Ordering::SeqCst), 11, "{name}: nothing is sent twice");
    for error in &reads {
        assert!(error.is_backend(), "{name}: {error:?}");
    }
    for error in &writes {
        assert_eq!(error.is_ambiguous(), write_is_open, "{name}: {error:?}");
        assert!(!error.is_conflict() && !error.is_not_found(), "{name}: {error:?}");
    }
    let mut all = String::new();
    for error in reads.iter().chain(&writes) {
        let _ = write!(all, "{error} {error:?}");
    }
    assert!(!all.contains(KEY) && !all.contains("SharedKey"), "{name}: {all}");
}

#[tokio::test]
async fn what_is_no_http_is_no_answer() {
    nothing_is_believed("closes at once", says(""), true).await;
    nothing_is_believed("noise", says(vec![0xff; 500]), true).await;
    nothing_is_believed("another protocol", says("220 mail.example ESMTP\r\n"), true).await;
    nothing_is_believed("half a status line", says("HTTP/1.1 20"), true).await;
    let many: String = (0..500).fold(String::new(), |all, n| all + &format!("X-{n}: y\r\n"));
    nothing_is_believed("many headers", http("204 No Content", &many, ""), true).await;
}

#[tokio::test]
async fn an_answer_that_is_cut_is_no_answer() {
    let body = r#"{"value":[{"PartitionKey":"p","RowKey":"r"}]}"#;
    for cut in [0, 1, 20, body.len() - 1] {
        let text = format!(
            "HTTP/1.1 202 Accepted\r\nContent-Length: {}\r\n\r\n{}",
            body.len(),
            &body[..cut]
        );
        nothing_is_believed("a cut body", says(text), true).await;
    }
    let chunked = "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"value\":[]}";
    nothing_is_believed("a cut chunk", says(chunked), true).await;
}

#[tokio::test]
async fn a_page_of_another_server_is_no_answer() {
    let page = "<html><body>Please sign in</body></html>";
    let html = "Content-Type: text/html\r\n";
    // Success, as a sign-in page says it: no row is there, none is missing, none was written.
    nothing_is_believed("a sign-in page", http("200 OK", html, page), true).await;
    nothing_is_believed("an empty page", http("200 OK", html, ""), true).await;
    let json = "Content-Type: application/json\r\n";
    nothing_is_believed("another JSON", http("200 OK", json, "{\"ok\":true}"), true).await;
    nothing_is_believed("a list", http("200 OK", json, "[]"), true).await;
    nothing_is_believed("null", http("200 OK", json, "null"), true).await;
    let deep = "[".repeat(100_000);
    nothing_is_believed("brackets", http("200 OK", json, &deep), true).await;
    // Not there, as a server says it that has no tables at all.
    nothing_is_believed("not found", http("404 Not Found", html, page), false).await;
    nothing_is_believed("a bare 404", http("404 Not Found", "", ""), false).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, asked) = server(http("200 OK", "", "{\"value\":[]}")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let to = format!("Location: {}/Staff\r\n", elsewhere.endpoint());
        nothing_is_believed(status, http(status, &to, ""), false).await;
    }
    // The signature would have gone along.
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_that_drips_comes_to_an_end() {
    let mut slow = http("202 Accepted", "", &" ".repeat(1000));
    (slow.chunk, slow.pause) = (1, Duration::from_millis(50));
    nothing_is_believed("drips", slow, true).await;
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let mut flood = says("HTTP/1.1 202 Accepted\r\n\r\n{\"value\":[");
    flood.forever = Some(vec![b' '; 1 << 20]);
    let (azure, _) = server(flood).await;
    let begun = Instant::now();
    let error = scan(&azure).await.unwrap_err();
    assert!(error.is_backend(), "{error:?}");
    assert!(azure.apply(&two()).await.unwrap_err().is_ambiguous());
    assert!(begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn another_row_is_not_taken_for_the_one_that_was_asked_for() {
    let json = "Content-Type: application/json\r\n";
    for body in
        [r#"{"PartitionKey":"p","RowKey":"s"}"#, r#"{"PartitionKey":"P","RowKey":"r"}"#, "{}"]
    {
        let (azure, _) = server(http("200 OK", json, body)).await;
        let error = read(&azure, "Staff", "p", "r").await.unwrap_err();
        assert!(error.is_backend() && error.to_string().contains("requested row"), "{error}");
    }
}

#[tokio::test]
async fn a_batch_answer_is_counted() {
    let part = "--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n";
    for (parts, open) in [(0, true), (1, true), (2, false), (3, true)] {
        let body = format!("--b\r\n\r\n{}--c--\r\n--b--\r\n", part.repeat(parts));
        let (azure, _) = server(http("202 Accepted", "", &body)).await;
        let outcome = azure.apply(&two()).await;
        assert_eq!(outcome.is_err_and(|error| error.is_ambiguous()), open, "{parts} parts");
    }
    // An index that no operation has.
    let refused = "--c\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"value\":\"99999999999999999999:no\"}}}\r\n--c--";
    let (azure, _) = server(http("202 Accepted", "", refused)).await;
    let error = azure.apply(&two()).await.unwrap_err();
    assert!(
        error.is_conflict() && error.failed_index().is_some_and(|index| index < 2),
        "{error:?}"
    );
}

#[tokio::test]
async fn one_bad_row_is_one_error_at_its_place() {
    let json = "Content-Type: application/json\r\n";
    let twice = r#"{"PartitionKey":"p","RowKey":"b","A":1,"\u0041":2}"#;
    let outside = r#"{"PartitionKey":"q","RowKey":"b","A":1}"#;
    for (bad, is_corrupt) in [(twice, true), (outside, false)] {
        let body = format!(
            r#"{{"value":[{{"PartitionKey":"p","RowKey":"a","A":1}},{bad},{{"PartitionKey":"p","RowKey":"c","A":2}},{{"PartitionKey":"p","RowKey":"d","A":1}}]}}"#
        );
        let (azure, _) = server(http("200 OK", json, &body)).await;
        let filter = Filter::eq("PartitionKey", "p") & Filter::eq("A", 1);
        let scan =
            ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
        let page = azure.scan(scan).await.unwrap();
        let found: Vec<_> = page.rows.iter().map(|row| row.as_ref().map(Row::row_key)).collect();
        // `c` fails the condition, so that it is left out.
        assert!(matches!(found[..], [Ok("a"), Err(_), Ok("d")]), "{found:?}");
        let error = page.into_rows().unwrap_err();
        assert_eq!((error.is_corrupt(), error.is_backend()), (is_corrupt, !is_corrupt), "{error}");
        assert_eq!(error.keys().map(|(_, row_key)| row_key), Some("b"));
        let (azure, _) = server(http("200 OK", json, bad)).await;
        let error = read(&azure, "Staff", "p", "b").await.unwrap_err();
        assert_eq!((error.is_corrupt(), error.is_backend()), (is_corrupt, !is_corrupt), "{error}");
    }
}

#[tokio::test]
async fn a_continuation_that_leads_back_to_itself_is_an_error() {
    let headers = "x-ms-continuation-NextPartitionKey: p\r\nx-ms-continuation-NextRowKey: r\r\n\
                   x-ms-continuation-NextTableName: Staff\r\n";
    let (azure, asked) = server(http("200 OK", headers, r#"{"value":[]}"#)).await;
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    let next = azure.scan(scan).await.unwrap().next;
    let error = azure.scan(ScanRequest { from: next.as_ref(), ..scan }).await.unwrap_err();
    assert!(error.is_backend() && error.to_string().contains("continuation"), "{error}");
    let names = azure.tables(TableRequest::List { from: None, within: None }).await.unwrap();
    let from = names.next.as_deref();
    let error = azure.tables(TableRequest::List { from, within: None }).await.unwrap_err();
    assert!(error.is_backend() && error.to_string().contains("continuation"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

/// Whatever a server puts into bodies, headers and names: no terminal obeys it, and no log is filled.
#[tokio::test]
async fn what_a_server_says_is_shown_harmless() {
    let evil = "\u{0}\u{1b}[2J\u{7}\u{202e}\u{85}\nforged line";
    let long = "x".repeat(50_000);
    let json = serde_json::json!({ "odata.error": {
        "code": format!("Odd{evil}{long}"), "message": { "value": format!("0:No{evil}{long}") }
    }});
    let xml =
        format!("<Error><Code>Odd{evil}{long}</Code><Message>No{evil}{long}</Message></Error>");
    let part = |body: &str| {
        format!(
            "--b\r\n\r\nHTTP/1.1 400 Bad\r\nx-ms-error-code: O\u{1b}[2J{long}\r\n\r\n{body}\r\n--b--"
        )
    };
    let row = serde_json::json!({ "value": [{
        "PartitionKey": format!("p{evil}{long}"), "RowKey": evil, "odata.etag": evil,
        (format!("N{evil}")): "1", (format!("N{evil}@odata.type")): format!("Edm.{evil}")
    }]});
    let names = |name: &str| serde_json::json!({ "value": [{ "TableName": name }] }).to_string();
    let manners = [
        http("400 Bad", "", &json.to_string()),
        http("403 No", "", &xml),
        http("409 Conflict", "x-ms-error-code: O\u{1b}[2J\r\n", ""),
        http("404 None", "", &xml),
        http("500 Bad", "", &json.to_string()),
        http("202 Accepted", "", &part(&json.to_string())),
        http("202 Accepted", "", &part(&xml)),
        http("200 OK", "", &row.to_string()),
        http("200 OK", "", &names(evil)),
        http("200 OK", "", &names(&long)),
    ];
    for (at, manner) in manners.into_iter().enumerate() {
        let (azure, _) = server(manner.clone()).await;
        let batch = two();
        let mut errors = vec![
            read(&azure, "Staff", "p", "r").await.err(),
            azure.tables(TableRequest::List { from: None, within: None }).await.err(),
            azure.access_policies("Staff").await.err(),
            apply(&azure, "Staff", insert()).await.err(),
            azure.apply(&batch).await.err(),
            azure.tables(TableRequest::Create("Staff")).await.err(),
        ];
        let filter = Filter::Constant(true);
        let scan =
            ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
        match azure.scan(scan).await {
            Ok(page) => errors.extend(page.rows.into_iter().map(Result::err)),
            Err(error) => errors.push(Some(error)),
        }
        let errors: Vec<Error> = errors.into_iter().flatten().collect();
        assert!(errors.len() >= 5, "{at}: {errors:?}");
        for error in errors {
            for shown in [error.to_string(), format!("{error:?}")] {
                let is_bad = |c: char| c.is_control() || c == '\u{202e}';
                assert!(!shown.contains(is_bad), "{at}: {shown:?}");
                assert!(shown.len() < 6000, "{at}: {} bytes", shown.len());
            }
        }
    }
}
