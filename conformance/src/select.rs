//! `$select`.

use crate::setup::{Setup, expected, filter, properties, refused};
use entable_core::{
    backend::{ReadRequest, Rows, ScanRequest},
    edm::Value,
    error::Result,
    row::Row,
};

fn three() -> [(&'static str, Value); 3] {
    [("A", 1.into()), ("B", "two".into()), ("C", 3.0.into())]
}

fn names(select: &[&str]) -> Vec<String> {
    select.iter().map(|name| (*name).to_owned()).collect()
}

async fn scan(s: &Setup, text: &str, select: &[String]) -> Result<Rows> {
    let filter = filter(text);
    let scan = ScanRequest {
        table: s.table(),
        filter: &filter,
        select: Some(select),
        top: None,
        from: None,
    };
    s.backend().scan(scan).await
}

async fn read(s: &Setup, select: &[&str]) -> Row {
    let select = names(select);
    let read =
        ReadRequest { table: s.table(), partition_key: "p", row_key: "r", select: Some(&select) };
    s.backend().read(read).await.expect("the row can be read").expect("the row is there")
}

async fn only(s: &Setup, text: &str, select: &[&str]) -> Row {
    let page = scan(s, text, &names(select)).await.expect("the page can be read");
    let mut rows = page.into_rows().expect("each row decodes");
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// 4.1: a query returns exactly the selected properties.
pub async fn query_selects(s: &Setup) {
    s.given("p", "r", &three()).await;
    let found = only(s, "", &["C", "A"]).await;
    assert_eq!(properties(&found), expected(&[("A", 1.into()), ("C", 3.0.into())]));
}

/// 4.1: a read returns exactly the selected properties.
pub async fn read_selects(s: &Setup) {
    s.given("p", "r", &three()).await;
    assert_eq!(properties(&read(s, &["B"]).await), expected(&[("B", "two".into())]));
}

/// 4.1: a selected property that the entity lacks is absent.
pub async fn missing_is_absent(s: &Setup) {
    s.given("p", "r", &three()).await;
    for found in [read(s, &["A", "Z"]).await, only(s, "", &["A", "Z"]).await] {
        assert_eq!(properties(&found), expected(&[("A", 1.into())]));
    }
}

/// 4.1: an entity that has none of the selected properties is returned all the same.
pub async fn none_of_the_selected(s: &Setup) {
    s.given("p", "r", &three()).await;
    assert_eq!(properties(&only(s, "", &["Z"]).await), []);
}

/// 4.1: keys, Timestamp and ETag come with every selection.
pub async fn keys_and_version_always_come(s: &Setup) {
    s.given("p", "r", &three()).await;
    let whole = s.get("p", "r").await.expect("the row is there");
    for found in [read(s, &["B"]).await, only(s, "", &["B"]).await] {
        assert_eq!((found.partition_key(), found.row_key()), ("p", "r"));
        assert_eq!(found.timestamp(), whole.timestamp());
        assert_eq!(found.etag(), whole.etag());
    }
}

/// 4.1: keys may be selected by name but are not properties.
pub async fn keys_by_name(s: &Setup) {
    s.given("p", "r", &three()).await;
    let found = only(s, "", &["PartitionKey", "RowKey", "Timestamp", "A"]).await;
    assert_eq!(properties(&found), expected(&[("A", 1.into())]));
}

/// 4.1: the filter sees properties that are not selected.
pub async fn filter_sees_the_unselected(s: &Setup) {
    s.given("p", "r", &three()).await;
    s.given("p", "s", &[("A", 9.into()), ("B", "two".into())]).await;
    let found = only(s, "A eq 1", &["B"]).await;
    assert_eq!((found.row_key(), properties(&found)), ("r", expected(&[("B", "two".into())])));
}

/// 2.2: names are selected by case.
pub async fn selection_is_case_sensitive(s: &Setup) {
    s.given("p", "r", &three()).await;
    assert_eq!(properties(&only(s, "", &["a", "b"]).await), []);
}

/// 4.1: more than 255 names are refused.
pub async fn too_many_names(s: &Setup) {
    let select: Vec<String> = (0..256).map(|at| format!("P{at}")).collect();
    let result = scan(s, "", &select).await;
    assert!(refused(result, 400, "InvalidInput").is_invalid());
}

/// 4.1: 255 names are taken.
pub async fn most_names(s: &Setup) {
    s.given("p", "r", &[("P7", 7.into())]).await;
    let select: Vec<String> = (0..255).map(|at| format!("P{at}")).collect();
    let page = scan(s, "", &select).await.expect("the page can be read");
    assert_eq!(
        properties(page.rows[0].as_ref().expect("the row decodes")),
        expected(&[("P7", 7.into())])
    );
}
