//! Tests that rows are the same after a write and a read.

use entable::{
    Azure, AzureOptions, Batch, Condition, Continuation, ETag, Filter, Operation, Row, Ticks,
    ValueRef,
    backend::{
        Backend, ReadRequest, ScanRequest, TableRequest,
        layer::{Observe, Retry, RetryPolicy},
    },
};
use uuid::Uuid;

use crate::{
    emulator::{apply, new_name, options, read, row, table},
    scripted_http::{Fake, Reply},
};

fn every_type() -> Row {
    let mut row = Row::build("p", "r");
    row.put("Yes", ValueRef::Boolean(true));
    row.put("I", ValueRef::Int32(i32::MIN));
    row.put("L", ValueRef::Int64(i64::MIN));
    row.put("L2", ValueRef::Int64(5));
    row.put("D", ValueRef::Double(3.0));
    row.put("D2", ValueRef::Double(-1.5e300));
    row.put("S", ValueRef::String("a \"quoted\" \\ text, é, 😀, \u{1}"));
    row.put("T", ValueRef::DateTime("2014-08-22T00:50:32.1234567Z".parse::<Ticks>().unwrap()));
    row.put("G", ValueRef::Guid(Uuid::from_u128(0x1234_5678_9abc_def0)));
    row.put("B", ValueRef::Binary(&[0, 1, 254, 255]));
    row.finish().unwrap()
}

#[tokio::test]
async fn every_type_comes_back_as_it_went() {
    let Some((azure, table)) = table().await else { return };
    let row = every_type();
    let written = apply(&azure, &table, Operation::insert(row.clone())).await.unwrap();
    let found = read(&azure, &table, "p", "r").await.unwrap().unwrap();
    assert_eq!(found.to_bag().unwrap(), row.to_bag().unwrap());
    assert_eq!(found.etag(), written.etag);
    assert!(found.timestamp().is_some());
    let filter = Filter::eq("PartitionKey", "p");
    let page = azure.scan(scan(&table, &filter, None, None)).await.unwrap();
    assert_eq!(page.rows[0].as_ref().unwrap().to_bag().unwrap(), row.to_bag().unwrap());
    assert_eq!(page.rows[0].as_ref().unwrap().etag(), written.etag);
}

fn scan<'a>(
    table: &'a str,
    filter: &'a Filter,
    top: Option<u32>,
    from: Option<&'a Continuation>,
) -> ScanRequest<'a> {
    ScanRequest { table, filter, select: None, top, from }
}

#[tokio::test]
async fn every_verb_does_what_the_table_of_operations_says() {
    let Some((azure, table)) = table().await else { return };
    let t = &table;
    let first = apply(&azure, t, Operation::insert(row("p", "r", "1"))).await.unwrap();
    let error = apply(&azure, t, Operation::insert(row("p", "r", "1"))).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.code(), Some("EntityAlreadyExists"));
    assert_eq!(error.keys(), Some(("p", "r")));
    let etag = first.etag.unwrap();
    let second = Operation::replace(row("p", "r", "2"), Condition::Match(etag.clone()));
    let second = apply(&azure, t, second).await.unwrap().etag.unwrap();
    let stale = Operation::merge(row("p", "r", "3"), Condition::Match(etag.clone()));
    let error = apply(&azure, t, stale).await.unwrap_err();
    assert!(error.is_precondition_failed() && error.status() == Some(412), "{error}");
    apply(&azure, t, Operation::merge(row("p", "r", "4"), Condition::Match(second))).await.unwrap();
    apply(&azure, t, Operation::insert_or_merge(row("p", "r", "5"))).await.unwrap();
    apply(&azure, t, Operation::insert_or_replace(row("p", "s", "6"))).await.unwrap();
    let stale = Operation::delete("p", "r", Condition::Match(etag)).unwrap();
    assert!(apply(&azure, t, stale).await.unwrap_err().is_precondition_failed());
    let gone = Operation::delete("p", "r", Condition::Any).unwrap();
    assert_eq!(apply(&azure, t, gone.clone()).await.unwrap().etag, None);
    let error = apply(&azure, t, gone).await.unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFound"));
    assert!(read(&azure, t, "p", "r").await.unwrap().is_none());
    let missing = Operation::replace(row("p", "r", "7"), Condition::Any);
    assert!(apply(&azure, t, missing).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn pages_go_on_where_they_ended() {
    let Some((azure, table)) = table().await else { return };
    for at in 0..7 {
        apply(&azure, &table, Operation::insert(row("p", &format!("{at}"), "x"))).await.unwrap();
    }
    let filter = Filter::Constant(true);
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let page = azure.scan(scan(&table, &filter, Some(3), from.as_ref())).await.unwrap();
        assert!(page.rows.len() <= 3);
        found.extend(page.rows.iter().map(|row| row.as_ref().unwrap().row_key().to_owned()));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, ["0", "1", "2", "3", "4", "5", "6"]);
    let none = Filter::Constant(false);
    assert!(azure.scan(scan(&table, &none, None, None)).await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn a_selection_brings_keys_and_version_too() {
    let Some((azure, table)) = table().await else { return };
    apply(&azure, &table, Operation::insert(every_type())).await.unwrap();
    let select = ["I".to_owned(), "Missing".to_owned()];
    let request =
        ReadRequest { table: &table, partition_key: "p", row_key: "r", select: Some(&select) };
    let found = azure.read(request).await.unwrap().unwrap();
    assert_eq!(found.property_count().unwrap(), 1);
    assert_eq!((found.partition_key(), found.row_key()), ("p", "r"));
    assert!(found.timestamp().is_some() && found.etag().is_some());
    let filter = Filter::eq("I", i32::MIN);
    let scan = ScanRequest {
        table: &table,
        filter: &filter,
        select: Some(&select),
        top: None,
        from: None,
    };
    let page = azure.scan(scan).await.unwrap();
    assert_eq!(
        (
            page.rows[0].as_ref().unwrap().row_key(),
            page.rows[0].as_ref().unwrap().property_count().unwrap()
        ),
        ("r", 1)
    );
}

/// The names in `$select` of an address, if it has one.
fn selected(url: &str) -> Option<Vec<String>> {
    let (_, list) = url.split_once("$select=")?;
    let list = list.split('&').next().unwrap().replace("%2C", ",");
    Some(list.split(',').map(str::to_owned).collect())
}

#[tokio::test]
async fn a_selection_with_the_systems_names_is_never_over_255() {
    let row =
        r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2021-05-26T15:48:25Z","P7":7,"Other":1}"#;
    let etag = || vec![("etag", "W/\"x\"")];
    for own in 250..=255 {
        let page = format!(r#"{{"value":[{row}]}}"#);
        let fake = Fake::new([
            Reply::Answer(200, etag(), row.to_owned()),
            Reply::Answer(200, Vec::new(), page),
        ]);
        let azure = fake.azure();
        let select: Vec<String> = (0..own).map(|at| format!("P{at}")).collect();
        let request =
            ReadRequest { table: "Staff", partition_key: "p", row_key: "r", select: Some(&select) };
        let found = azure.read(request).await.unwrap().unwrap();
        let filter = Filter::eq("PartitionKey", "p");
        let scan = ScanRequest { select: Some(&select), ..scan("Staff", &filter, None, None) };
        let page = azure.scan(scan).await.unwrap();
        let asked: Vec<_> = fake.asked().iter().map(|asked| selected(&asked.url)).collect();
        for names in &asked {
            // 252 names and the three of the system are what the service takes; of more, all are read.
            assert_eq!(names.as_ref().map(Vec::len), (own <= 252).then_some(own + 3), "{own}");
            for name in names.iter().flat_map(|_| ["PartitionKey", "RowKey", "Timestamp", "P0"]) {
                let count = names.iter().flatten().filter(|sent| *sent == name).count();
                assert_eq!(count, 1, "{name} of {own}");
            }
        }
        assert_eq!(asked.len(), 2);
        assert_eq!(found.get("P7").unwrap(), Some(ValueRef::Int32(7)));
        assert_eq!(found.etag(), Some(ETag::from("W/\"x\"")));
        assert!(
            found.timestamp().is_some() && page.rows[0].as_ref().unwrap().timestamp().is_some()
        );
        if own > 252 {
            // The service sends whole rows, and the backend returns the selected properties alone.
            assert_eq!(found.property_count().unwrap(), 1, "{own}");
            assert_eq!(page.rows[0].as_ref().unwrap().property_count().unwrap(), 1, "{own}");
        }
    }
    // Names of the system that are asked for are not sent twice, and do not count twice.
    let fake = Fake::new([Reply::Answer(200, etag(), row.to_owned())]);
    let mut select: Vec<String> = (0..252).map(|at| format!("P{at}")).collect();
    select.extend(["PartitionKey", "RowKey", "Timestamp"].map(str::to_owned));
    let request =
        ReadRequest { table: "Staff", partition_key: "p", row_key: "r", select: Some(&select) };
    fake.azure().read(request).await.unwrap().unwrap();
    assert_eq!(selected(&fake.asked()[0].url).unwrap().len(), 255);
}

#[test]
fn a_backend_names_the_host_of_its_account_and_a_port_that_is_not_the_default() {
    let fake = Fake::new([]);
    let account = fake.azure();
    assert_eq!(account.server_address(), Some("myaccount.table.core.windows.net"));
    assert_eq!(account.server_port(), None);
    let emulator = fake.with(AzureOptions::emulator());
    assert_eq!(
        (emulator.server_address(), emulator.server_port()),
        (Some("127.0.0.1"), Some(10_002))
    );
    // A layer names the host and the port of the backend that it is around.
    let layers = Observe::around(Retry::around(emulator, RetryPolicy::default()));
    assert_eq!((layers.server_address(), layers.server_port()), (Some("127.0.0.1"), Some(10_002)));
    // The port of the backend is none of another host.
    let elsewhere = layers.server("elsewhere");
    assert_eq!((elsewhere.server_address(), elsewhere.server_port()), (Some("elsewhere"), None));
    assert_eq!(elsewhere.port(8_443).server_port(), Some(8_443));
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing() {
    let Some((azure, table)) = table().await else { return };
    let mut batch = Batch::new(&*table);
    batch.push(Operation::insert(row("p", "1", "a"))).unwrap();
    batch.push(Operation::insert_or_replace(row("p", "2", "b"))).unwrap();
    batch.push(Operation::insert_or_merge(row("p", "o'b %+é😀", "c"))).unwrap();
    let written = azure.apply(&batch).await.unwrap();
    assert_eq!(written.len(), 3);
    for (written, key) in written.iter().zip(["1", "2", "o'b %+é😀"]) {
        let found = read(&azure, &table, "p", key).await.unwrap().unwrap();
        assert_eq!(found.etag(), written.etag, "{key}");
    }
    let mut batch = Batch::new(&*table);
    let etag = Condition::Match(written[0].etag.clone().unwrap());
    batch.push(Operation::replace(row("p", "1", "A"), etag)).unwrap();
    batch.push(Operation::insert(row("p", "2", "B"))).unwrap();
    let error = azure.apply(&batch).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert_eq!((error.failed_index(), error.code()), (Some(1), Some("EntityAlreadyExists")));
    assert_eq!(error.keys(), Some(("p", "2")));
    let found = read(&azure, &table, "p", "1").await.unwrap().unwrap();
    assert_eq!(found.get("Text").unwrap(), Some(ValueRef::String("a")));
    let mut batch = Batch::new(&*table);
    batch.push(Operation::delete("p", "1", Condition::Any).unwrap()).unwrap();
    batch.push(Operation::merge(row("p", "2", "z"), Condition::Any)).unwrap();
    let written = azure.apply(&batch).await.unwrap();
    assert!(written[0].etag.is_none() && written[1].etag.is_some());
}

/// Lists all tables: other tests leave theirs on the emulator, and a page has at most a thousand.
async fn listed(azure: &Azure) -> Vec<String> {
    let (mut names, mut from) = (Vec::new(), None::<String>);
    loop {
        let request = TableRequest::List { from: from.as_deref(), within: None };
        let page = azure.tables(request).await.unwrap();
        names.extend(page.names);
        from = page.next;
        if from.is_none() {
            return names;
        }
    }
}

#[tokio::test]
async fn tables_are_created_listed_and_deleted() {
    let Some((azure, table)) = table().await else { return };
    let error = azure.tables(TableRequest::Create(&table)).await.unwrap_err();
    assert_eq!(error.code(), Some("TableAlreadyExists"), "{error}");
    assert!(listed(&azure).await.contains(&table));
    azure.tables(TableRequest::Delete(&table)).await.unwrap();
    let error = azure.tables(TableRequest::Delete(&table)).await.unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFound"));
    let error = read(&azure, &table, "p", "r").await.unwrap_err();
    assert_eq!((error.code(), error.table()), (Some("TableNotFound"), Some(&*table)));
    let error = apply(&azure, &table, Operation::insert(row("p", "r", "x"))).await.unwrap_err();
    assert_eq!(error.code(), Some("TableNotFound"));
    let everything = Filter::Constant(true);
    let error = azure.scan(scan(&table, &everything, None, None)).await.unwrap_err();
    assert_eq!(error.code(), Some("TableNotFound"));
    let error = azure.tables(TableRequest::Create("no-name")).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidResourceName"));
}

#[tokio::test]
async fn a_version_is_kept_byte_for_byte() {
    let Some(options) = options() else { return };
    let azure = Azure::new(options).unwrap();
    let table = new_name();
    azure.tables(TableRequest::Create(&table)).await.unwrap();
    let mut etag = apply(&azure, &table, Operation::insert(row("p", "r", "0"))).await.unwrap().etag;
    for at in 0..20 {
        let text: ETag = etag.clone().unwrap();
        let next = Operation::replace(row("p", "r", &at.to_string()), Condition::Match(text));
        etag = apply(&azure, &table, next).await.unwrap().etag;
        let found = read(&azure, &table, "p", "r").await.unwrap().unwrap();
        assert_eq!(found.etag(), etag);
    }
}
