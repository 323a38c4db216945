//! Tests batches: the operations that an entity group transaction may hold, and its size in bytes.

use base64::{Engine, engine::general_purpose::STANDARD};
use entable::{
    Batch, Condition, ETag, Operation, Row, Ticks, Value, ValueRef, Verb,
    limits::{BATCH_OPERATIONS, REQUEST_BYTES},
};
use proptest::prelude::*;
use serde_json::{Map, json};

use crate::edm::values;

fn insert(partition_key: &str, row_key: &str) -> Operation {
    Operation::insert(Row::build(partition_key, row_key).finish().unwrap())
}

#[test]
fn a_hundred_operations_and_no_more() {
    let mut batch = Batch::new("Staff");
    for n in 0..BATCH_OPERATIONS {
        // Not in order, so that the search for a row that comes twice has to keep one.
        batch.push(insert("Sales", &format!("{:03}", n * 37 % 100))).unwrap();
    }
    assert!(!batch.has_room_for(1, 0));
    let error = batch.push(insert("Sales", "last")).unwrap_err();
    assert!(error.is_too_large());
    assert_eq!(error.code(), Some("InvalidInput"));
    // The service names the last operation that it takes.
    assert_eq!((error.failed_index(), error.table()), (Some(99), Some("Staff")));
    assert_eq!(error.keys(), Some(("Sales", "last")));
    assert_eq!(error.message(), "the batch has 101 operations, the limit is 100");
    assert_eq!(batch.len(), 100);
}

#[test]
fn single_partition_key() {
    let mut batch = Batch::new("Staff");
    batch.push(insert("Sales", "1")).unwrap();
    let error = batch.push(insert("Marketing", "2")).unwrap_err();
    assert_eq!(error.code(), Some("CommandsInBatchActOnDifferentPartitions"));
    assert_eq!(error.failed_index(), Some(1));
    assert!(error.message().contains("`Sales`"), "{error}");
    assert_eq!(batch.partition_key(), "Sales");
    assert_eq!(batch.len(), 1);
}

#[test]
fn a_row_once_and_both_positions_are_named() {
    let mut batch = Batch::new("Staff");
    for row_key in ["c", "a", "b"] {
        batch.push(insert("Sales", row_key)).unwrap();
    }
    for (earlier, row_key) in ["c", "a", "b"].into_iter().enumerate() {
        let delete = Operation::delete("Sales", row_key, Condition::Any).unwrap();
        let error = batch.push(delete).unwrap_err();
        assert_eq!(error.code(), Some("InvalidDuplicateRow"));
        assert_eq!(error.failed_index(), Some(3));
        assert!(error.message().contains(&format!("operations {earlier} and 3")), "{error}");
    }
    batch.push(insert("Sales", "d")).unwrap();
    assert_eq!(batch.len(), 4);
}

#[test]
fn below_four_mebibytes() {
    let large = vec![0; 60_000];
    let mut batch = Batch::new("Staff");
    let mut refused = None;
    for n in 0..BATCH_OPERATIONS {
        let mut row = Row::build("Sales", &format!("{n:03}"));
        ["A", "B", "C", "D"].iter().for_each(|name| row.put(name, ValueRef::Binary(&large)));
        let operation = Operation::insert(row.finish().unwrap());
        let fits = batch.has_room_for(1, operation.request_bytes().unwrap());
        match batch.push(operation) {
            Ok(()) => assert!(fits && batch.request_bytes() < REQUEST_BYTES),
            Err(error) => {
                assert!(!fits);
                refused = Some(error);
                break;
            }
        }
    }
    let error = refused.unwrap();
    assert_eq!(error.code(), Some("RequestBodyTooLarge"));
    assert!(error.is_too_large());
    assert!(error.message().contains(&REQUEST_BYTES.to_string()), "{error}");
    assert_eq!(error.failed_index(), Some(batch.len()));
}

#[test]
fn the_largest_entity_fits_alone() {
    // Controls take six bytes of JSON for two of the service's.
    let text = "\u{1}".repeat(32_000);
    let mut row = Row::build("P", "R");
    (b'A'..=b'P').for_each(|name| {
        row.put(&char::from(name).to_string(), ValueRef::String(&text));
    });
    let row = row.finish().unwrap();
    row.check().unwrap();
    let batch = Batch::single("Staff", Operation::insert(row)).unwrap();
    assert!(batch.request_bytes() < REQUEST_BYTES);
    assert!(multipart(batch.operations()).len() <= batch.request_bytes());
}

#[test]
fn a_name_counts_as_often_as_it_is_sent() {
    let mut batch = Batch::new("Staff");
    for n in 0..BATCH_OPERATIONS {
        let mut row = Row::build("Sales", &format!("{n:03}"));
        (0..252).for_each(|at| row.put(&format!("P{at:0>90}"), ValueRef::Int32(n as i32)));
        batch.push(Operation::insert(row.finish().unwrap())).unwrap();
    }
    let real = multipart(batch.operations()).len();
    assert!(real > 2 * 1024 * 1024 && real <= batch.request_bytes());
}

/// Bytes of headers that an operation may be counted with and does not send.
const MOST_UNUSED: usize = 200;

/// A transaction of a hundred rows with keys, numbers and times of every length, whose text makes it
/// `bytes` bytes long.
fn transaction_of(bytes: usize) -> Vec<Operation> {
    let row = |n: usize, text: &str| {
        let key = format!("{n:03}{}", "\u{e9}'\"\u{10000}".repeat(100));
        let mut row = Row::build(&"\u{e9}".repeat(512), &key);
        for at in 0..60 {
            let number = i32::try_from(n * at).unwrap();
            row.put(&format!("I{at}"), ValueRef::Int32(-number));
            row.put(&format!("L{at}"), ValueRef::Int64(i64::from(number).pow(3)));
            row.put(&format!("D{at}"), ValueRef::Double(f64::from(number) / 4.0));
            let time =
                Ticks::new(635_000_000_000_000_000 + i64::from(number) * 12_345_000).unwrap();
            row.put(&format!("T{at}"), ValueRef::DateTime(time));
        }
        row.put("Text", ValueRef::String(text));
        Operation::insert_or_replace(row.finish().unwrap())
    };
    let with = |text: &str| (0..BATCH_OPERATIONS).map(|n| row(n, text)).collect::<Vec<_>>();
    let missing = bytes - multipart(&with("")).len();
    // Line feeds take two bytes each; what is left of the division stays below a hundred bytes.
    with(&"\n".repeat(missing / BATCH_OPERATIONS / 2))
}

#[test]
fn what_the_service_takes_is_not_refused() {
    let headers = BATCH_OPERATIONS * MOST_UNUSED;
    let mut batch = Batch::new("Staff");
    for operation in transaction_of(REQUEST_BYTES - headers) {
        batch.push(operation).unwrap();
    }
    let mut batch = Batch::new("Staff");
    let over = transaction_of(REQUEST_BYTES + 1000);
    assert!(multipart(&over).len() > REQUEST_BYTES);
    let error = over.into_iter().find_map(|operation| batch.push(operation).err()).unwrap();
    assert_eq!(error.code(), Some("RequestBodyTooLarge"));
}

#[test]
fn a_row_over_a_limit_is_refused_with_its_place() {
    let large = vec![0; 70_000];
    let mut row = Row::build("Sales", "1");
    row.put("Photo", ValueRef::Binary(&large));
    let operation = Operation::insert(row.finish().unwrap());
    let error = Batch::single("Staff", operation.clone()).unwrap_err();
    assert_eq!((error.table(), error.property()), (Some("Staff"), Some("Photo")));
    assert_eq!((error.keys(), error.failed_index()), (Some(("Sales", "1")), None));
    let error = Batch::new("Staff").push(operation).unwrap_err();
    assert_eq!(error.failed_index(), Some(0));
}

#[test]
fn conditions_stand_where_the_service_has_them() {
    let row = || Row::build("P", "R").finish().unwrap();
    let tag = || Condition::Match(ETag::from("x"));
    assert_eq!(Operation::insert(row()).condition(), None);
    assert_eq!(Operation::insert_or_replace(row()).condition(), None);
    assert_eq!(Operation::insert_or_merge(row()).condition(), None);
    assert_eq!(Operation::replace(row(), tag()).condition(), Some(&tag()));
    assert_eq!(Operation::merge(row(), Condition::Any).condition(), Some(&Condition::Any));
    assert_eq!(Operation::delete("P", "R", tag()).unwrap().condition(), Some(&tag()));
}

/// The key as it stands in an address: quotes doubled, all but unreserved characters percent-encoded.
fn in_url(key: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        b'\'' => "''".into(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(encode).collect()
}

fn body(row: &Row) -> String {
    let mut body = Map::new();
    body.insert("PartitionKey".into(), row.partition_key().into());
    body.insert("RowKey".into(), row.row_key().into());
    for (name, value) in row.to_bag().unwrap().iter() {
        let text = match value {
            Value::Boolean(v) => json!(v),
            Value::Int32(v) => json!(v),
            Value::Int64(v) => json!(v.to_string()),
            Value::Double(v) if v.is_finite() => json!(v),
            Value::Double(v) => json!(v.to_string()),
            Value::String(v) => json!(v),
            Value::DateTime(v) => json!(v.to_string()),
            Value::Guid(v) => json!(v.to_string()),
            Value::Binary(v) => json!(STANDARD.encode(v)),
        };
        // JSON tells these three types itself: they are sent without an annotation.
        if !matches!(value, Value::Boolean(_) | Value::Int32(_) | Value::String(_)) {
            body.insert(format!("{name}@odata.type"), value.edm_type().name().into());
        }
        body.insert(name.to_owned(), text);
    }
    serde_json::to_string(&body).unwrap()
}

/// The operation as a part of a changeset, for an account and a table of the longest names.
fn part(operation: &Operation) -> String {
    let row = operation.row();
    let method = match operation.verb() {
        Verb::Insert => "POST",
        Verb::Replace | Verb::InsertOrReplace => "PUT",
        Verb::Merge | Verb::InsertOrMerge => "MERGE",
        Verb::Delete => "DELETE",
    };
    let endpoint = format!("https://{}", "a".repeat(92));
    let (partition_key, row_key) = (in_url(row.partition_key()), in_url(row.row_key()));
    let keys = match operation.verb() {
        Verb::Insert => String::new(),
        _ => format!("(PartitionKey='{partition_key}',RowKey='{row_key}')"),
    };
    let table = "T".repeat(63);
    let prefer = match operation.verb() {
        Verb::Insert => "Prefer: return-no-content\r\n",
        _ => "",
    };
    let condition = match operation.condition() {
        Some(Condition::Match(etag)) => format!("If-Match: {etag}\r\n"),
        Some(Condition::Any) => "If-Match: *\r\n".into(),
        None => String::new(),
    };
    let body = match operation.verb() {
        Verb::Delete => String::new(),
        _ => {
            let body = body(row);
            let length = body.len();
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        }
    };
    format!(
        "--changeset_00000000000000000000000000000000\r\n\
         Content-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\
         \r\n\
         {method} {endpoint}/{table}{keys} HTTP/1.1\r\n\
         Accept: application/json;odata=minimalmetadata\r\n\
         DataServiceVersion: 3.0\r\n\
         {prefer}{condition}{body}\r\n"
    )
}

fn multipart(operations: &[Operation]) -> String {
    let parts: String = operations.iter().map(part).collect();
    let id = "00000000000000000000000000000000";
    format!(
        "--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n\
         {parts}--changeset_{id}--\r\n--batch_{id}--\r\n"
    )
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof!["'{0,200}", "\"{0,200}", ".{0,60}", "[\u{e9}\u{10000}]{0,60}"]
        .prop_map(|key| key.chars().filter(|c| !entable::limits::is_forbidden_in_key(*c)).collect())
}

fn long_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => values(),
        1 => "[\u{0}-\u{20}\"\\\\]{0,300}".prop_map(Value::String),
        1 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::from),
        1 => Just(Value::Double(f64::MIN_POSITIVE * -1.234_567_890_123_456_7)),
        1 => Just(Value::DateTime(Ticks::MAX)),
    ]
}

prop_compose! {
    fn operations()(
        row_key in keys(),
        verb in 0_u8..6,
        tag in prop::option::of("[!-~]{0,100}"),
        properties in prop::collection::btree_map("[A-Za-z\u{e9}]{1,40}", long_values(), 0..8),
    ) -> (String, u8, Option<String>, Vec<(String, Value)>) {
        (row_key, verb, tag, properties.into_iter().collect())
    }
}

proptest! {
    #[test]
    fn the_bytes_are_those_that_are_sent(
        partition_key in keys(),
        all in prop::collection::vec(operations(), 1..5),
    ) {
        let mut batch = Batch::new("Staff");
        for (row_key, verb, tag, properties) in all {
            let mut row = Row::build(&partition_key, &row_key);
            properties.iter().for_each(|(name, value)| row.put(name, value.as_ref()));
            let row = row.finish().unwrap();
            let condition = tag.map_or(Condition::Any, |tag| Condition::Match(tag.as_str().into()));
            let operation = match verb {
                0 => Operation::insert(row),
                1 => Operation::replace(row, condition),
                2 => Operation::merge(row, condition),
                3 => Operation::insert_or_replace(row),
                4 => Operation::insert_or_merge(row),
                _ => Operation::delete(&partition_key, &row_key, condition).unwrap(),
            };
            let (counted, real) = (operation.request_bytes().unwrap(), part(&operation).len());
            let is_double = |(_, value): &&(String, Value)| matches!(value, Value::Double(_));
            let most = real + MOST_UNUSED + 24 * properties.iter().filter(is_double).count();
            prop_assert!(real <= counted && counted <= most, "{} > {}", real, counted);
            // One row may come twice by chance.
            let _ = batch.push(operation);
        }
        let real = multipart(batch.operations()).len();
        prop_assert!(real <= batch.request_bytes(), "{} > {}", real, batch.request_bytes());
    }
}
