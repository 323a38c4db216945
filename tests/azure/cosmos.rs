//! Tests exchanges with Cosmos DB's Table API.
//!
//! Every exchange is made by hand: from Microsoft's FAQ "Azure Cosmos DB for Table", and from recordings
//! in the tests of Microsoft's clients. The project has no account of Cosmos DB.

use std::sync::Arc;

use entable::{
    AzureOptions, Batch, Condition, ETag, Filter, Operation,
    backend::{Backend, ScanRequest, TableCase, TableRequest, azure::PrimaryThenSecondary},
};

use crate::{
    emulator::{apply, row},
    scripted_http::{Fake, KEY, Reply, answer, refusal},
};

fn options() -> AzureOptions {
    let options = AzureOptions::from_account_key("me", KEY).unwrap();
    options.endpoint("https://me.table.cosmos.azure.com:443/").unwrap()
}

fn fake(replies: impl IntoIterator<Item = Reply>) -> (Arc<Fake>, entable::Azure) {
    let fake = Fake::new(replies);
    let azure = fake.with(options());
    (fake, azure)
}

const ETAG: (&str, &str) = ("etag", "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\"");

#[test]
fn the_capabilities_are_those_of_the_table_of_differences() {
    let (_, azure) = fake([]);
    let found = azure.capabilities();
    assert_eq!((found.name, found.table_case), ("cosmos", TableCase::Sensitive));
    assert!(!found.ordered && !found.strong_reads && found.durable && !found.exclusive);
    let error = PrimaryThenSecondary::new(options()).unwrap_err();
    assert!(error.is_invalid(), "no secondary: {error}");
}

/// Microsoft's clients turn PATCH and MERGE into this for Cosmos DB.
#[tokio::test]
async fn a_merge_is_a_post_that_names_its_method() {
    let (fake, azure) = fake([answer(204, &[ETAG]), answer(204, &[ETAG]), answer(204, &[ETAG])]);
    let etag = || Condition::Match(ETag::from("W/\"a\""));
    apply(&azure, "Staff", Operation::merge(row("p", "r", "x"), etag())).await.unwrap();
    apply(&azure, "Staff", Operation::insert_or_merge(row("p", "r", "x"))).await.unwrap();
    apply(&azure, "Staff", Operation::replace(row("p", "r", "x"), etag())).await.unwrap();
    let asked = fake.asked();
    let sent = |at: usize| {
        (&*asked[at].method, asked[at].header("x-http-method"), asked[at].header("if-match"))
    };
    assert_eq!(sent(0), ("POST", Some("MERGE"), Some("W/\"a\"")));
    assert_eq!(sent(1), ("POST", Some("MERGE"), None));
    assert_eq!(sent(2), ("PUT", None, Some("W/\"a\"")));
    // Azure Table storage gets the method itself.
    let storage = Fake::new([answer(204, &[ETAG])]);
    let operation = Operation::merge(row("p", "r", "x"), etag());
    apply(&storage.azure(), "Staff", operation).await.unwrap();
    let asked = &storage.asked()[0];
    assert_eq!((&*asked.method, asked.header("x-http-method")), ("MERGE", None));
}

#[tokio::test]
async fn a_condition_that_fails_and_a_row_that_exists_have_the_codes_of_table_storage() {
    let changed = "The update condition specified in the request was not satisfied.";
    let (_, azure) = fake([
        refusal(412, "UpdateConditionNotSatisfied", changed),
        refusal(409, "EntityAlreadyExists", "0:The specified entity already exists."),
        refusal(429, "TooManyRequests", "The request rate is too large."),
        refusal(400, "PropertiesNeedValue", "PartitionKey/RowKey cannot be empty"),
        refusal(413, "RequestBodyTooLarge", "The request body is too large."),
    ]);
    let insert = || Operation::insert(row("p", "r", "x"));
    let replace = Operation::replace(row("p", "r", "x"), Condition::Match(ETag::from("W/\"a\"")));
    assert!(apply(&azure, "Staff", replace).await.unwrap_err().is_precondition_failed());
    // The position in the message is there for a single operation, too, and is no part of the message.
    let exists = apply(&azure, "Staff", insert()).await.unwrap_err();
    assert!(exists.is_conflict() && !exists.message().contains("0:"), "{exists}");
    assert!(apply(&azure, "Staff", insert()).await.unwrap_err().is_throttled());
    for code in ["PropertiesNeedValue", "RequestBodyTooLarge"] {
        let error = apply(&azure, "Staff", Operation::insert(row("p", "", "x"))).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert!(!error.is_ambiguous(), "{error}");
    }
}

/// A continuation of Cosmos DB is JSON about its own ids, and goes back as it came.
#[tokio::test]
async fn a_continuation_goes_back_as_it_came() {
    let token = r##"{"token":"+RID:~abc#RT:1#TRC:1000#FPC:AQ==","range":{"min":"","max":"FF"}}"##;
    let next =
        [("x-ms-continuation-nextpartitionkey", token), ("x-ms-continuation-nextrowkey", "NA")];
    // More rows than a page of Table storage has.
    let many: Vec<String> = (0..1500)
        .map(|n| {
            format!(
                r#"{{"PartitionKey":"p","RowKey":"{n}","Timestamp":"2026-01-01T00:00:00.0000000Z"}}"#
            )
        })
        .collect();
    let body = format!("{{\"value\":[{}]}}", many.join(","));
    let (fake, azure) = fake([
        Reply::Answer(200, next.to_vec(), body),
        Reply::Answer(200, vec![], "{\"value\":[]}".to_owned()),
    ]);
    let filter = Filter::eq("PartitionKey", "p");
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    let page = azure.scan(scan).await.unwrap();
    let found = page.next.clone().unwrap();
    assert_eq!((&*found.partition_key, found.row_key.as_deref()), (token, Some("NA")));
    assert_eq!(page.into_rows().unwrap().len(), 1500);
    azure.scan(ScanRequest { from: Some(&found), ..scan }).await.unwrap();
    let asked = &fake.asked()[1].url;
    let sent = "&NextPartitionKey=%7B%22token%22%3A%22%2BRID%3A~abc%23RT%3A1%23TRC%3A1000%23FPC%3AAQ%3D%3D%22%2C";
    assert!(asked.contains(sent) && asked.ends_with("&NextRowKey=NA"), "{asked}");
}

/// Both may exist there, so the name goes out as it was given.
#[tokio::test]
async fn names_that_differ_in_case_are_two_tables() {
    let list = r#"{"value":[{"TableName":"Staff"},{"TableName":"staff"}]}"#;
    let (fake, azure) =
        fake([answer(204, &[]), answer(204, &[]), Reply::Answer(200, vec![], list.to_owned())]);
    azure.tables(TableRequest::Create("Staff")).await.unwrap();
    azure.tables(TableRequest::Create("staff")).await.unwrap();
    let names = azure.tables(TableRequest::List { from: None, within: None }).await.unwrap().names;
    assert_eq!(names, ["Staff", "staff"]);
    assert!(fake.asked()[1].body.contains("\"staff\""));
}

/// Cosmos DB answers 501 to what it lacks: nothing has happened, and the request is not repeated.
#[tokio::test]
async fn what_is_not_implemented_has_not_happened() {
    let (fake, azure) = fake(vec![refusal(501, "NotImplemented", "not implemented"); 2]);
    let mut batch = Batch::new("Staff");
    batch.push(Operation::insert(row("p", "1", "x"))).unwrap();
    batch.push(Operation::insert(row("p", "2", "x"))).unwrap();
    for _ in 0..2 {
        let error = azure.apply(&batch).await.unwrap_err();
        assert!(!error.is_ambiguous() && error.status() == Some(501), "{error:?}");
    }
    assert_eq!(fake.asked().len(), 2);
}
