//! Tests one fault of `azure_data_tables` each, by its number in `docs/azure.md`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    Azure, AzureOptions, Batch, Condition, Continuation, ETag, ErrorKind, Filter, Operation,
    ValueRef,
    backend::{Backend, NameRange, ReadRequest, ScanRequest, TableRequest},
};

use crate::{
    emulator::{apply, read, row, table},
    scripted_http::{Fake, KEY, Reply, answer, refusal},
};

const ETAG: (&str, &str) = ("etag", "W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\"");

fn batch(operations: impl IntoIterator<Item = Operation>) -> Batch {
    let mut batch = Batch::new("Staff");
    operations.into_iter().for_each(|operation| batch.push(operation).unwrap());
    batch
}

fn two() -> Batch {
    batch([Operation::insert(row("p", "1", "a")), Operation::insert(row("p", "2", "b"))])
}

fn multipart(parts: &[&str]) -> Reply {
    let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for part in parts {
        body.push_str("--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ");
        body.push_str(part);
        body.push_str("\r\n");
    }
    body.push_str("--c--\r\n--b--\r\n");
    Reply::Answer(202, Vec::new(), body)
}

#[tokio::test]
async fn f01_a_failed_transaction_is_an_error_with_code_message_and_index() {
    let failed = |message: &str| {
        let body = format!(
            r#"{{"odata.error":{{"code":"UpdateConditionNotSatisfied","message":{{"value":"{message}"}}}}}}"#
        );
        multipart(&[&format!(
            "412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n{body}"
        )])
    };
    let ok = "204 No Content\r\nETag: W/\"x\"\r\n\r\n";
    let script =
        [failed("1:The update condition.\\nRequestId:1"), failed("No prefix."), multipart(&[ok])];
    let azure = Fake::new(script).azure();
    let error = azure.apply(&two()).await.unwrap_err();
    assert!(error.is_precondition_failed());
    assert_eq!((error.failed_index(), error.keys()), (Some(1), Some(("p", "2"))));
    assert_eq!(error.message(), "the update condition");
    let error = azure.apply(&two()).await.unwrap_err();
    assert_eq!(
        (error.failed_index(), error.code()),
        (Some(0), Some("UpdateConditionNotSatisfied"))
    );
    // Fewer parts than operations, and none of them a failure: nobody knows.
    assert!(azure.apply(&two()).await.unwrap_err().is_ambiguous());
}

#[tokio::test]
async fn f02_a_quote_in_a_key_addresses_its_own_row() {
    let Some((azure, table)) = table().await else { return };
    apply(&azure, &table, Operation::insert(row("p", "o", "theirs"))).await.unwrap();
    apply(&azure, &table, Operation::insert_or_replace(row("p", "o'brien", "mine"))).await.unwrap();
    apply(&azure, &table, Operation::insert_or_replace(row("p'',RowKey='o", "x", "z")))
        .await
        .unwrap();
    let found = read(&azure, &table, "p", "o'brien").await.unwrap().unwrap();
    assert_eq!(found.get("Text").unwrap(), Some(ValueRef::String("mine")));
    let other = read(&azure, &table, "p", "o").await.unwrap().unwrap();
    assert_eq!(other.get("Text").unwrap(), Some(ValueRef::String("theirs")));
    let gone = Operation::delete("p", "o'brien", Condition::Any).unwrap();
    apply(&azure, &table, gone).await.unwrap();
    assert!(read(&azure, &table, "p", "o").await.unwrap().is_some());
}

#[tokio::test]
async fn f03_a_control_in_a_key_is_refused_before_the_wire() {
    let fake = Fake::new([]);
    let azure = fake.azure();
    for key in ["a\tb", "a\nb", "a\rb", "a/b", "a\\b", "a#b", "a?b", "a\u{85}b"] {
        let error = read(&azure, "Staff", "p", key).await.unwrap_err();
        assert_eq!(error.code(), Some("OutOfRangeInput"), "{key:?}");
        let delete = Operation::delete("p", key, Condition::Any).unwrap();
        assert!(apply(&azure, "Staff", delete).await.unwrap_err().is_invalid());
    }
    assert!(fake.asked().is_empty());
}

/// Keys that a URL could bend, through every verb that has the key in its address.
#[tokio::test]
async fn f03_every_other_key_goes_there_and_back() {
    let Some((azure, table)) = table().await else { return };
    for key in [
        "'", "''", "%", "%25", "%2F", "%27", "+", "a b", " ", "\"", ":", "@", ",", "$", "=", "&",
        ";", "(", ")", "~", "|", "^", "[", "]", "{", "}", "<", ">", "`", "!", "*", ".", "..", "é",
        "e\u{301}", "日本", "😀",
    ] {
        let name = format!("k{key}");
        for (partition_key, row_key) in [(key, name.as_str()), (name.as_str(), key)] {
            apply(&azure, &table, Operation::insert(row(partition_key, row_key, key)))
                .await
                .unwrap();
            apply(
                &azure,
                &table,
                Operation::merge(row(partition_key, row_key, "2"), Condition::Any),
            )
            .await
            .unwrap();
            apply(&azure, &table, Operation::insert_or_replace(row(partition_key, row_key, key)))
                .await
                .unwrap();
            let found = read(&azure, &table, partition_key, row_key).await.unwrap();
            let found = found.unwrap_or_else(|| panic!("{key:?} is lost"));
            assert_eq!((found.partition_key(), found.row_key()), (partition_key, row_key));
            let filter = Filter::eq("PartitionKey", partition_key)
                & Filter::eq("RowKey", row_key)
                & Filter::eq("Text", key);
            let scan =
                ScanRequest { table: &table, filter: &filter, select: None, top: None, from: None };
            assert_eq!(azure.scan(scan).await.unwrap().rows.len(), 1, "{key:?}");
            // The emulator cuts an address in a transaction at a comma.
            if row_key != "," {
                let mut batch = Batch::new(&*table);
                batch
                    .push(Operation::replace(row(partition_key, row_key, "3"), Condition::Any))
                    .unwrap();
                batch.push(Operation::insert(row(partition_key, "other", "3"))).unwrap();
                azure.apply(&batch).await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
            }
            let delete = Operation::delete(partition_key, row_key, Condition::Any).unwrap();
            apply(&azure, &table, delete).await.unwrap();
            assert!(read(&azure, &table, partition_key, row_key).await.unwrap().is_none());
        }
    }
}

/// A server that counts connections and answers 404 to whatever comes, or nothing.
async fn server(answers: bool) -> (String, Arc<AtomicUsize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/devstoreaccount1", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                    if answers {
                        stream
                            .write_all(b"HTTP/1.1 404 Not Found\r\nx-ms-error-code: ResourceNotFound\r\nContent-Length: 0\r\n\r\n")
                            .await
                            .unwrap();
                    }
                }
            });
        }
    });
    (address, connections)
}

fn at(address: &str) -> AzureOptions {
    AzureOptions::emulator().endpoint(address).unwrap()
}

#[tokio::test]
async fn f04_connections_are_used_again() {
    let (address, connections) = server(true).await;
    let azure = Azure::new(at(&address)).unwrap();
    for _ in 0..50 {
        assert!(read(&azure.clone(), "Staff", "p", "r").await.unwrap().is_none());
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn f05_no_request_goes_on_for_ever() {
    let (address, _) = server(false).await;
    let azure = Azure::new(at(&address).timeout(Duration::from_millis(100))).unwrap();
    let began = std::time::Instant::now();
    let error = read(&azure, "Staff", "p", "r").await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Backend, None));
    assert!(error.to_string().contains("0.1 s"), "{error}");
    let error = apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn f05_the_time_is_kept_with_any_client() {
    let fake = Fake::new(vec![Reply::Silence; 5]);
    let azure = fake.azure();
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    assert!(azure.scan(scan).await.unwrap_err().is_backend());
    assert!(azure.apply(&two()).await.unwrap_err().is_ambiguous());
    assert!(azure.tables(TableRequest::Create("Staff")).await.unwrap_err().is_ambiguous());
    assert!(
        azure
            .tables(TableRequest::List { from: None, within: None })
            .await
            .unwrap_err()
            .is_backend()
    );
    assert!(azure.access_policies("Staff").await.unwrap_err().is_backend());
}

#[tokio::test]
async fn f06_nothing_is_sent_twice_behind_the_callers_back() {
    let busy = refusal(503, "ServerBusy", "The server is busy.");
    let broken = refusal(500, "InternalError", "Oh.");
    let fake = Fake::new([busy.clone(), broken, Reply::Reset, busy]);
    let azure = fake.azure();
    let insert = || Operation::insert(row("p", "r", "x"));
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert!(error.is_throttled() && error.status() == Some(503));
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert!(error.is_ambiguous() && error.code() == Some("InternalError"));
    assert!(apply(&azure, "Staff", insert()).await.unwrap_err().is_ambiguous());
    assert!(read(&azure, "Staff", "p", "r").await.unwrap_err().is_throttled());
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test]
async fn f07_an_answer_needs_no_header_that_says_nothing() {
    let body = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2021-05-26T15:48:25.77957Z"}"#;
    let fake = Fake::new([
        answer(204, &[ETAG]),
        answer(204, &[]),
        Reply::Answer(200, Vec::new(), body.to_owned()),
        Reply::Answer(200, Vec::new(), r#"{"value":[]}"#.to_owned()),
        answer(204, &[]),
        Reply::Answer(200, Vec::new(), r#"{"value":[{"TableName":"Staff"}]}"#.to_owned()),
    ]);
    let azure = fake.azure();
    let written = apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap();
    assert_eq!(written.etag, Some(ETag::from(ETAG.1)));
    let delete = Operation::delete("p", "r", Condition::Any).unwrap();
    assert_eq!(apply(&azure, "Staff", delete).await.unwrap().etag, None);
    let found = read(&azure, "Staff", "p", "r").await.unwrap().unwrap();
    assert_eq!(found.etag().unwrap().to_string(), ETAG.1);
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    assert!(azure.scan(scan).await.unwrap().rows.is_empty());
    azure.tables(TableRequest::Create("Staff")).await.unwrap();
    assert_eq!(
        azure.tables(TableRequest::List { from: None, within: None }).await.unwrap().names,
        ["Staff"]
    );
}

#[tokio::test]
async fn f08_code_and_message_come_from_the_body_then_from_the_header() {
    let xml = "<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate.</Message></Error>";
    let fake = Fake::new([
        refusal(409, "EntityAlreadyExists", "The specified entity already exists."),
        answer(409, &[("x-ms-error-code", "TableBeingDeleted")]),
        Reply::Answer(403, Vec::new(), xml.to_owned()),
        Reply::Answer(400, Vec::new(), "<html>Bad Request - Invalid URL".to_owned()),
        answer(503, &[("retry-after", "7")]),
    ]);
    let azure = fake.azure();
    let insert = || Operation::insert(row("p", "r", "x"));
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Some("EntityAlreadyExists"), "the specified entity already exists")
    );
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert_eq!(error.code(), Some("TableBeingDeleted"));
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("check that the key"), "{error}");
    assert!(read(&azure, "Staff", "p", "r").await.unwrap_err().is_invalid());
    // Not said by the service itself: the write may have happened.
    let error = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert!(error.is_ambiguous() && error.retry_after() == Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn f09_a_transaction_is_well_formed_multipart() {
    let ok = "204 No Content\r\nETag: W/\"x\"\r\n\r\n";
    let fake = Fake::new([multipart(&[ok, ok])]);
    fake.azure().apply(&two()).await.unwrap();
    let asked = &fake.asked()[0];
    assert_eq!(asked.url, "https://myaccount.table.core.windows.net/$batch");
    let boundary =
        asked.header("content-type").unwrap().strip_prefix("multipart/mixed; boundary=").unwrap();
    assert!(asked.body.starts_with(&format!("--{boundary}\r\n")));
    assert!(asked.body.ends_with(&format!("--{boundary}--\r\n")));
    assert!(!asked.body.replace("\r\n", "").contains('\n'));
    assert_eq!(asked.body.matches("Prefer: return-no-content\r\n").count(), 2);
    assert_eq!(asked.header("content-length").unwrap(), asked.body.len().to_string());
}

#[tokio::test]
async fn f10_limits_are_checked_before_the_wire() {
    let fake = Fake::new([]);
    let azure = fake.azure();
    assert!(azure.apply(&Batch::new("Staff")).await.unwrap_err().is_invalid());
    let mut batch = batch((0..100).map(|at| Operation::insert(row("p", &at.to_string(), "x"))));
    assert_eq!(
        batch.push(Operation::insert(row("p", "100", "x"))).unwrap_err().failed_index(),
        Some(99)
    );
    let mut batch = two();
    assert!(batch.push(Operation::insert(row("q", "1", "x"))).unwrap_err().is_invalid());
    assert!(batch.push(Operation::insert(row("p", "1", "x"))).unwrap_err().is_invalid());
    for name in ["a", "Staff')", "Staff?x", "../x", "tables"] {
        assert!(read(&azure, name, "p", "r").await.unwrap_err().is_invalid(), "{name}");
        assert!(azure.tables(TableRequest::Create(name)).await.is_err());
        assert!(azure.access_policies(name).await.is_err());
        assert!(azure.tables(TableRequest::Delete(name)).await.unwrap_err().is_not_found());
    }
    let forged = Condition::Match(ETag::from("W/\"x\"\r\nX-Other: \""));
    let delete = Operation::delete("p", "r", forged).unwrap();
    assert!(apply(&azure, "Staff", delete).await.unwrap_err().is_invalid());
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn f11_pages_and_continuations_are_the_callers() {
    let page = || r#"{"value":[]}"#.to_owned();
    let next = vec![("x-ms-continuation-nextpartitionkey", "1!4!YS8rPQ--")];
    let fake =
        Fake::new([Reply::Answer(200, next, page()), Reply::Answer(200, Vec::new(), page())]);
    let azure = fake.azure();
    let filter = Filter::eq("PartitionKey", "a b+'%é");
    let scan =
        ScanRequest { table: "Staff", filter: &filter, select: None, top: Some(3), from: None };
    let next = azure.scan(scan).await.unwrap().next.unwrap();
    assert_eq!(next, Continuation { partition_key: "1!4!YS8rPQ--".into(), row_key: None });
    let from = Continuation { partition_key: "1!4!+/=&".into(), row_key: Some("x y".into()) };
    assert!(azure.scan(ScanRequest { from: Some(&from), ..scan }).await.unwrap().next.is_none());
    let asked = fake.asked();
    assert_eq!(
        asked[0].url,
        "https://myaccount.table.core.windows.net/Staff()?$filter=PartitionKey%20eq%20%27a%20b%2B%27%27%25%C3%A9%27&$top=3"
    );
    assert!(
        asked[1].url.ends_with("&NextPartitionKey=1%214%21%2B%2F%3D%26&NextRowKey=x%20y"),
        "{}",
        asked[1].url
    );
}

#[tokio::test]
async fn f12_answers_come_with_minimal_metadata() {
    let page = r#"{"value":[]}"#.to_owned();
    let fake = Fake::new([
        refusal(404, "ResourceNotFound", "The specified resource does not exist."),
        Reply::Answer(200, Vec::new(), page),
        answer(204, &[ETAG]),
    ]);
    let azure = fake.azure();
    assert!(read(&azure, "Staff", "p", "r").await.unwrap().is_none());
    let filter = Filter::Constant(true);
    azure
        .scan(ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None })
        .await
        .unwrap();
    apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap();
    for asked in fake.asked() {
        assert_eq!(asked.header("accept"), Some("application/json;odata=minimalmetadata"));
    }
    assert_eq!(fake.asked()[2].header("prefer"), Some("return-no-content"));
}

#[tokio::test]
async fn f13_a_guarded_verb_always_sends_its_condition() {
    let ok = "204 No Content\r\nETag: W/\"x\"\r\n\r\n";
    let mut script = vec![answer(204, &[ETAG]); 6];
    script.push(multipart(&[ok; 5]));
    let fake = Fake::new(script);
    let azure = fake.azure();
    let etag = || Condition::Match(ETag::from(ETAG.1));
    let all = |key: &dyn Fn(usize) -> String| {
        [
            (Operation::replace(row("p", &key(0), "x"), Condition::Any), "PUT", Some("*")),
            (Operation::merge(row("p", &key(1), "x"), etag()), "MERGE", Some(ETAG.1)),
            (Operation::delete("p", &key(2), Condition::Any).unwrap(), "DELETE", Some("*")),
            (Operation::insert_or_replace(row("p", &key(3), "x")), "PUT", None),
            (Operation::insert_or_merge(row("p", &key(4), "x")), "MERGE", None),
        ]
    };
    for (at, (operation, method, condition)) in all(&|_| "r".to_owned()).into_iter().enumerate() {
        apply(&azure, "Staff", operation).await.unwrap();
        let asked = &fake.asked()[at];
        assert_eq!((&*asked.method, asked.header("if-match")), (method, condition));
    }
    apply(&azure, "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap();
    azure.apply(&batch(all(&|at| at.to_string()).map(|(operation, ..)| operation))).await.unwrap();
    let asked = fake.asked();
    let body = &asked[6].body;
    assert_eq!(body.matches("If-Match: *\r\n").count(), 2);
    assert_eq!(body.matches(&format!("If-Match: {}\r\n", ETAG.1)).count(), 1);
    assert_eq!(body.matches("If-Match").count(), 3);
}

#[tokio::test]
async fn f15_policies_and_own_requests_are_signed_like_the_others() {
    let fake =
        Fake::new([answer(204, &[]), Reply::Answer(200, Vec::new(), r#"{"value":[]}"#.into())]);
    let azure = fake.azure();
    azure.set_access_policies("Staff", &[]).await.unwrap();
    azure.tables(TableRequest::List { from: Some("1!2!a b+"), within: None }).await.unwrap();
    let asked = fake.asked();
    assert_eq!(
        (&*asked[0].method, &*asked[0].url),
        ("PUT", "https://myaccount.table.core.windows.net/Staff?comp=acl")
    );
    assert!(asked[0].header("authorization").unwrap().starts_with("SharedKey myaccount:"));
    assert!(asked[1].url.ends_with("/Tables?NextTableName=1%212%21a%20b%2B"));
    let cosmos = Fake::new([]);
    let options = AzureOptions::from_account_key("a", KEY).unwrap().cosmos(true);
    assert!(cosmos.with(options).access_policies("Staff").await.unwrap_err().is_unsupported());
}

#[tokio::test]
async fn a_range_of_names_is_a_filter_that_cosmos_is_not_sent() {
    let nothing = || Reply::Answer(200, Vec::new(), r#"{"value":[]}"#.to_owned());
    let list =
        |first, last| TableRequest::List { from: None, within: Some(NameRange { first, last }) };
    let fake = Fake::new([nothing(), nothing()]);
    let azure = fake.azure();
    azure.tables(list("logs2014", "logs2016")).await.unwrap();
    azure.tables(list("Logs2014", "Logs2016")).await.unwrap();
    let filters = fake.asked().into_iter().map(|asked| {
        let filter =
            asked.url.split_once("/Tables?$filter=").expect("a filter").1.replace("%20", " ");
        filter.replace("%27", "'").replace("%28", "(").replace("%29", ")")
    });
    assert_eq!(
        filters.collect::<Vec<_>>(),
        [
            "(TableName ge 'logs2014') and (TableName le 'logs2016')",
            "((TableName ge 'Logs2014') and (TableName le 'Logs2016')) or \
         ((TableName ge 'logs2014') and (TableName le 'logs2016'))",
        ]
    );
    let cosmos = Fake::new([nothing()]);
    let options = AzureOptions::from_account_key("a", KEY).unwrap().cosmos(true);
    cosmos.with(options).tables(list("Logs2014", "Logs2016")).await.unwrap();
    assert!(cosmos.asked()[0].url.ends_with("/Tables"), "{}", cosmos.asked()[0].url);
}

#[tokio::test]
async fn cosmos_is_recognised_and_unordered() {
    let order = |options: AzureOptions| Azure::new(options).unwrap().capabilities().ordered;
    let storage = || AzureOptions::from_account_key("a", KEY).unwrap();
    assert!(order(storage()));
    assert!(!order(storage().cosmos(true)));
    assert!(!order(storage().endpoint("https://a.table.cosmos.azure.com:443/").unwrap()));
    assert!(order(storage().endpoint("https://a.table.cosmos.azure.com").unwrap().cosmos(false)));
    let strong = |options| Azure::new(options).unwrap().capabilities().strong_reads;
    assert!(strong(storage()));
    assert!(!strong(storage().cosmos(true)), "its default level lets reads lag");
    assert!(strong(storage().cosmos(true).strong_reads(true)));
    let read = ReadRequest { table: "Staff", partition_key: "", row_key: "", select: None };
    let fake =
        Fake::new([refusal(404, "ResourceNotFound", "The specified resource does not exist.")]);
    assert!(fake.azure().read(read).await.unwrap().is_none());
    assert!(fake.asked()[0].url.ends_with("/Staff(PartitionKey='',RowKey='')"));
}

#[tokio::test]
async fn a_write_that_needs_no_row_tells_a_missing_table_of_cosmos() {
    let missing = || refusal(404, "ResourceNotFound", "The specified resource does not exist.");
    let missing_in_batch = || {
        let body =
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"value":"0:No resource."}}}"#;
        multipart(&[&format!("404 Not Found\r\nContent-Type: application/json\r\n\r\n{body}")])
    };
    let code_of = async |reply: Reply, batch: Batch| {
        let options = AzureOptions::from_account_key("a", KEY).unwrap().cosmos(true);
        let error = Fake::new([reply]).with(options).apply(&batch).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        error.code().map(str::to_owned)
    };
    let makes = [Operation::insert, Operation::insert_or_replace, Operation::insert_or_merge];
    for make in makes {
        let code = code_of(missing(), batch([make(row("p", "1", "a"))])).await;
        assert_eq!(code.as_deref(), Some("TableNotFound"));
    }
    assert_eq!(code_of(missing_in_batch(), two()).await.as_deref(), Some("TableNotFound"));

    // These need a row: either may be missing.
    let replace = || Operation::replace(row("p", "1", "a"), Condition::Any);
    let alone = code_of(missing(), batch([replace()])).await;
    assert_eq!(alone.as_deref(), Some("ResourceNotFound"));
    let mixed = batch([Operation::insert(row("p", "2", "b")), replace()]);
    assert_eq!(code_of(missing_in_batch(), mixed).await.as_deref(), Some("ResourceNotFound"));
}
