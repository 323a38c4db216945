//! Questions that the service leaves open and the stores of this crate answer alike: `docs/choices.md`, row by
//! row. Other backends need not keep these.

use crate::setup::{
    Setup, bare, delete, etag, filter, properties, refused, row, row_keys, version,
};
use entable_core::{
    backend::{ReadRequest, ScanRequest},
    batch::{Batch, Condition, Operation},
    edm::Value,
    filter::Filter,
    row::{ETag, Row},
};

/// A key has up to 512 UTF-16 units; more is `KeyValueTooLarge`.
pub async fn key_length(s: &Setup) {
    s.given(&"\u{1f600}".repeat(256), &"k".repeat(512), &[]).await;
    for (partition_key, row_key) in [("p".repeat(513), "r".into()), ("p".into(), "r".repeat(513))] {
        let insert = Operation::insert(bare(&partition_key, &row_key));
        assert!(refused(s.one(insert).await, 400, "KeyValueTooLarge").is_too_large());
    }
}

/// A forbidden character in a key is `OutOfRangeInput` under every verb.
pub async fn forbidden_character_under_every_verb(s: &Setup) {
    let key = "a/b";
    let operations = [
        Operation::replace(bare(key, "r"), Condition::Any),
        Operation::merge(bare("p", key), Condition::Any),
        Operation::insert_or_replace(bare(key, "r")),
        Operation::insert_or_merge(bare("p", key)),
        delete(key, "r", Condition::Any),
    ];
    for operation in operations {
        refused(s.one(operation).await, 400, "OutOfRangeInput");
    }
}

/// A point read of keys that no row can have is refused.
pub async fn read_of_impossible_keys(s: &Setup) {
    refused(s.try_get("a?b", "r").await, 400, "OutOfRangeInput");
    refused(s.try_get("p", &"r".repeat(513)).await, 400, "KeyValueTooLarge");
}

/// A string has up to 32,768 UTF-16 units.
pub async fn string_length(s: &Setup) {
    s.given("p", "a", &[("P", "x".repeat(32_768).into())]).await;
    s.given("p", "b", &[("P", "\u{1f600}".repeat(16_384).into())]).await;
    let large = row("p", "c", &[("P", "x".repeat(32_769).into())]);
    refused(s.one(Operation::insert(large)).await, 400, "PropertyValueTooLarge");
}

/// The names of the system's properties are refused for a property with `PropertyNameInvalid`, the service's
/// code for a name that it does not take (suite of azure-data-tables for Python). The service itself ignores
/// a Timestamp of the caller (its recorded traffic, azure-data-tables 12.2.0): here no value is lost without
/// a word.
pub async fn system_names(s: &Setup) {
    for name in ["PartitionKey", "RowKey", "Timestamp"] {
        let insert = Operation::insert(row("p", "r", &[(name, "x".into())]));
        assert!(refused(s.one(insert).await, 400, "PropertyNameInvalid").is_invalid());
    }
}

/// A merge without properties is a write.
pub async fn merge_of_nothing(s: &Setup) {
    let first = s.given("p", "r", &[("P", 1.into())]).await;
    let second = s.one(Operation::merge(bare("p", "r"), Condition::Any)).await.expect("merged");
    assert_ne!(etag(&second), first);
    assert_eq!(s.properties("p", "r").await.len(), 1);
}

/// A malformed ETag is refused before existence is checked.
pub async fn malformed_etag_of_a_missing_row(s: &Setup) {
    let garbage = Condition::Match(ETag::from("garbage"));
    refused(s.one(delete("p", "r", garbage)).await, 400, "InvalidInput");
}

/// A weak ETag that the store never gave is another version (Azurite#1229), also with
/// `w` in lower case (`isEtagValid` of Azurite, for parity with the service). Two ETags in one condition are
/// malformed: the form is one `W/"..."`.
pub async fn foreign_etag(s: &Setup) {
    s.given("p", "r", &[]).await;
    let lower = Condition::Match(ETag::from("w/\"0x8D5\""));
    refused(s.one(delete("p", "r", lower)).await, 412, "UpdateConditionNotSatisfied");
    let two = Condition::Match(ETag::from("W/\"0x8D5\", W/\"0x8D6\""));
    refused(s.one(delete("p", "r", two)).await, 400, "InvalidInput");
    let foreign = || Condition::Match(ETag::from("W/\"0x8D5\""));
    refused(s.one(delete("p", "r", foreign())).await, 412, "UpdateConditionNotSatisfied");
    refused(s.one(delete("p", "s", foreign())).await, 404, "ResourceNotFound");
}

/// An insert is 201, every other write 204.
pub async fn statuses(s: &Setup) {
    let write = |operation| async { s.one(operation).await.expect("written").status };
    assert_eq!(write(Operation::insert(bare("p", "r"))).await, 201);
    assert_eq!(write(Operation::insert_or_replace(bare("p", "s"))).await, 204);
    assert_eq!(write(delete("p", "r", Condition::Any)).await, 204);
}

/// A row that is deleted and inserted many times never has an ETag that it had.
pub async fn versions_across_deletes(s: &Setup) {
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let own = s.given("p", "r", &[]).await;
        s.one(delete("p", "r", version(&own))).await.expect("deleted");
        assert!(seen.insert(own.clone()), "{own} comes twice");
    }
}

/// Azurite#1428: `$top=0` is a page without rows. It has no continuation, which would lead on for ever.
pub async fn top_of_nothing(s: &Setup) {
    s.given_rows("p", &["a", "b"]).await;
    let page = s.page(&filter(""), Some(0), None).await;
    assert_eq!((page.rows.len(), page.next), (0, None));
}

/// An empty selection is keys, Timestamp and ETag alone.
pub async fn empty_selection(s: &Setup) {
    let own = s.given("p", "r", &[("P", 1.into())]).await;
    let filter = filter("");
    let (table, select) = (s.table(), Some(&[][..]));
    let scan = ScanRequest { table, filter: &filter, select, top: None, from: None };
    let page = s.backend().scan(scan).await.expect("the page can be read");
    let read = ReadRequest { table, partition_key: "p", row_key: "r", select };
    let read = s.backend().read(read).await.expect("the row can be read");
    let rows = page.into_rows().expect("each row decodes");
    for found in rows.iter().chain(&read) {
        assert_eq!((properties(found).len(), found.etag()), (0, Some(own.clone())));
    }
    assert_eq!((rows.len(), read.is_some()), (1, true));
}

/// A full page has a continuation where its bounds go on, even if no later row matches.
pub async fn page_before_rows_that_do_not_match(s: &Setup) {
    for (key, wanted) in [("a", true), ("b", false)] {
        s.given("p", key, &[("Wanted", wanted.into())]).await;
    }
    let first = s.page(&filter("Wanted"), Some(1), None).await;
    assert_eq!(row_keys(&first.rows), ["a"]);
    assert!(first.next.is_some());
    let second = s.page(&filter("Wanted"), Some(1), first.next.as_ref()).await;
    assert_eq!((second.rows.len(), second.next), (0, None));
}

/// A page examines at most 20,000 rows.
pub async fn page_of_many_examined_rows(s: &Setup) {
    let keys: Vec<String> = (0..20_100).map(|at| format!("{at:05}")).collect();
    s.given_rows("p", &keys).await;
    s.given("p", "~last", &[("Last", true.into())]).await;
    let first = s.page(&filter("Last"), None, None).await;
    assert_eq!(first.rows.len(), 0);
    assert_eq!(first.next.as_ref().and_then(|next| next.row_key.as_deref()), Some("20000"));
    let second = s.page(&filter("Last"), None, first.next.as_ref()).await;
    assert_eq!((row_keys(&second.rows), second.next), (vec!["~last"], None));
}

/// A page ends once its rows take 16 MiB. Properties that are not selected take none.
pub async fn page_of_large_rows(s: &Setup) {
    // The largest row that has only binary properties takes a little less than 1 MiB.
    let blobs: Vec<String> = (0..15).map(|at| format!("Blob{at}")).collect();
    let large: Vec<(&str, Value)> =
        blobs.iter().map(|name| (&**name, Value::Binary(vec![7; 65_536].into()))).collect();
    let keys: Vec<String> = (0..19).map(|at| format!("{at:05}")).collect();
    for key in &keys {
        s.given("p", key, &large).await;
    }
    let first = s.page(&filter(""), None, None).await;
    let bytes = |rows: &[Row]| rows.iter().map(|row| row.as_bytes().len()).sum::<usize>();
    let most = 16 * 1024 * 1024;
    assert!(bytes(&first.rows) >= most, "{} bytes", bytes(&first.rows));
    assert!(bytes(&first.rows[1..]) < most, "{} bytes", bytes(&first.rows));
    let second = s.page(&filter(""), None, first.next.as_ref()).await;
    assert_eq!(row_keys(&[first.rows, second.rows].concat()), keys);
    assert_eq!(second.next, None);

    let scan = ScanRequest {
        table: s.table(),
        filter: &filter(""),
        select: Some(&[]),
        top: None,
        from: None,
    };
    let page = s.backend().scan(scan).await.expect("the page can be read");
    assert_eq!((page.rows.len(), page.next), (keys.len(), None));
}

/// More than 15 comparisons are taken.
pub async fn many_comparisons(s: &Setup) {
    s.given_rows("p", &["07", "63", "99"]).await;
    let any: Vec<String> = (0..64).map(|at| format!("RowKey eq '{at:02}'")).collect();
    s.finds(&any.join(" or "), &["07", "63"]).await;
}

/// Nesting beyond 100 levels is refused.
pub async fn deep_nesting(_: &Setup) {
    let nested = |depth| format!("{}true", "not ".repeat(depth));
    assert!(Filter::parse(&nested(99)).is_ok());
    refused(Filter::parse(&nested(100)), 400, "InvalidInput");
}

/// A stored NaN equals nothing, differs from everything, and is neither above nor below any number.
pub async fn nan_in_a_filter(s: &Setup) {
    s.given("p", "r", &[("P", f64::NAN.into())]).await;
    for number in ["0", "0L", "0.5"] {
        for (comparison, found) in
            [("eq", 0), ("ne", 1), ("lt", 0), ("le", 0), ("gt", 0), ("ge", 0)]
        {
            let rows = s.matching(&format!("P {comparison} {number}")).await;
            assert_eq!(rows.len(), found, "{comparison} {number}");
        }
    }
}

/// A filter that has no text is refused.
pub async fn filter_without_text(s: &Setup) {
    let filters = [
        Filter::eq("P", f64::NAN),
        Filter::lt("P", f64::INFINITY),
        Filter::eq("and", 1),
        Filter::eq("a b", 1),
        Filter::Property("true".to_owned()),
    ];
    for filter in filters {
        refused(s.try_page(&filter, None, None).await, 400, "InvalidInput");
    }
}

/// A time without a zone is UTC, and one with an offset is converted.
pub async fn time_literals(s: &Setup) {
    let at: entable_core::edm::Ticks = "2014-08-22T00:50:32Z".parse().expect("a time");
    s.given("p", "r", &[("At", at.into())]).await;
    for text in ["2014-08-22T00:50:32", "2014-08-22T02:50:32+02:00", "2014-08-21T23:50:32-01:00"] {
        s.finds(&format!("At eq datetime'{text}'"), &["r"]).await;
    }
}

/// A transaction without operations is refused.
pub async fn no_operation(s: &Setup) {
    let nothing = Batch::new(s.table());
    refused(s.backend().apply(&nothing).await, 400, "InvalidInput");
}

/// A single failing operation has index 0, and its error names its table and keys.
pub async fn single_operation_is_named(s: &Setup) {
    let error = refused(s.one(delete("p", "r", Condition::Any)).await, 404, "ResourceNotFound");
    assert_eq!((error.failed_index(), error.table()), (Some(0), Some(s.table())));
    assert_eq!(error.keys(), Some(("p", "r")));
}

/// A table can be created again right after it was deleted.
pub async fn recreate_at_once(s: &Setup) {
    s.given("p", "r", &[]).await;
    s.drop_table(s.table()).await.expect("deleted");
    s.create(s.table()).await.expect("created");
    s.finds("", &[]).await;
}
