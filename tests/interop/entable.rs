//! This crate's side: `entable-interop create|write <table>`, `entable-interop read <table> <writer>`,
//! `entable-interop send|receive <queue>`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test: it asserts and says what it did"
)]

use std::time::Duration;

use entable::{
    Azure, AzureOptions, AzureQueue, Batch, Condition, Filter, Message, MessageQueue, Operation,
    Row, Ticks, ValueRef,
    backend::{Backend, ReadRequest, ScanRequest, TableRequest},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const AWKWARD: &str = "o'brien %25+é😀";
const TEXT: &str = "a \"quoted\" \\ text, é, 😀";

fn types(partition_key: &str, at: &str) -> Row {
    let guid = Uuid::parse_str("01234567-89ab-cdef-0123-456789abcdef").unwrap();
    let mut row = Row::build(partition_key, "types");
    row.put("Yes", ValueRef::Boolean(true));
    row.put("Int32", ValueRef::Int32(-5));
    row.put("Int64", ValueRef::Int64(9_007_199_254_740_993));
    row.put("Whole", ValueRef::Double(3.0));
    row.put("Double", ValueRef::Double(-1.5e300));
    row.put("Text", ValueRef::String(TEXT));
    row.put("At", ValueRef::DateTime(at.parse::<Ticks>().unwrap()));
    row.put("Guid", ValueRef::Guid(guid));
    row.put("Binary", ValueRef::Binary(&[0, 1, 254, 255]));
    row.finish().unwrap()
}

fn row(row_key: &str, name: &str, value: ValueRef<'_>) -> Row {
    Row::build("entable", row_key).with(name, value).unwrap().finish().unwrap()
}

async fn write(azure: &Azure, table: &str) {
    let apply = async |operations: Vec<Operation>| {
        let mut batch = Batch::new(table);
        operations.into_iter().for_each(|operation| batch.push(operation).unwrap());
        azure.apply(&batch).await.unwrap();
    };
    let n = |key: &str, n| row(key, "N", ValueRef::Int32(n));
    apply(vec![Operation::insert(types("entable", "2014-08-22T00:50:32.1234567Z"))]).await;
    let awkward = row(AWKWARD, "Text", ValueRef::String(AWKWARD));
    apply(vec![Operation::insert_or_replace(awkward)]).await;
    apply(vec![Operation::insert(n("egt-a", 1)), Operation::insert(n("egt-b", 1))]).await;
    apply(vec![
        Operation::merge(n("egt-a", 2), Condition::Any),
        Operation::delete("entable", "egt-b", Condition::Any).unwrap(),
        Operation::insert_or_replace(n("egt-c", 3)),
    ])
    .await;
}

async fn read(azure: &Azure, table: &str, writer: &str) {
    let get = async |row_key: &str| {
        let read = ReadRequest { table, partition_key: writer, row_key, select: None };
        azure.read(read).await.unwrap()
    };
    let at = if writer == "python" { "123456Z" } else { "1234567Z" };
    let expected = types(writer, &format!("2014-08-22T00:50:32.{at}"));
    assert_eq!(get("types").await.unwrap().to_bag().unwrap(), expected.to_bag().unwrap());
    let awkward = get(AWKWARD).await.unwrap();
    assert_eq!(awkward.get("Text").unwrap(), Some(ValueRef::String(AWKWARD)));
    assert_eq!(get("egt-a").await.unwrap().get("N").unwrap(), Some(ValueRef::Int32(2)));
    assert_eq!(get("egt-c").await.unwrap().get("N").unwrap(), Some(ValueRef::Int32(3)));
    assert!(get("egt-b").await.is_none());
    let filter = Filter::eq("PartitionKey", writer);
    let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
    let rows = azure.scan(scan).await.unwrap().into_rows().unwrap();
    assert_eq!(rows.len(), 4);
    let found = rows.iter().find(|row| row.row_key() == "types").unwrap();
    assert_eq!(found.to_bag().unwrap(), expected.to_bag().unwrap());
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
#[table(name = "Interop", version = 1)]
struct Interop {
    id: u32,
    text: String,
}

async fn send(queue: &MessageQueue) {
    queue.send(&Interop { id: 0, text: TEXT.to_owned() }).await.unwrap();
}

/// Both forms are read; one message goes to the queue of poison.
async fn receive(queue: &MessageQueue) {
    let port = queue.port();
    let mut received = port.receive(32, Duration::from_secs(60)).await.unwrap();
    received.sort_by_key(|one| one.body().contains("\"id\":2"));
    assert_eq!(received.len(), 2);
    for (message, id) in received.iter().zip([1, 2]) {
        let body: serde_json::Value = serde_json::from_str(message.body()).unwrap();
        let body: Interop = serde_json::from_value(body["body"].clone()).unwrap();
        assert_eq!(body, Interop { id, text: TEXT.to_owned() });
    }
    port.poison(&received[0], "").await.unwrap();
    port.delete(&received[1]).await.unwrap();
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let connection = std::env::var("ENTABLE_AZURITE").unwrap();
    let options = AzureOptions::from_connection_string(&connection).unwrap();
    let azure = Azure::new(options.clone()).unwrap();
    let table = &arguments[1];
    let queue = || MessageQueue::over(AzureQueue::new(options, table).unwrap());
    match arguments[0].as_str() {
        "create" => drop(azure.tables(TableRequest::Create(table)).await.unwrap()),
        "write" => write(&azure, table).await,
        "send" => send(&queue()).await,
        "receive" => receive(&queue()).await,
        _ => read(&azure, table, &arguments[2]).await,
    }
    println!("entable: {}", arguments.join(" "));
}
