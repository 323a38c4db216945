//! Single operations without a condition, as the table of section 3 has them.

use crate::setup::{Setup, bare, delete, etag, expected, refused, row};
use entable_core::{
    batch::{Condition, Operation},
    edm::Value,
};

fn any() -> Condition {
    Condition::Any
}

fn old() -> [(&'static str, Value); 2] {
    [("Kept", 1.into()), ("Set", 1.into())]
}

/// 3: an inserted entity is read back with keys and properties.
pub async fn insert_then_read(s: &Setup) {
    let written = s.one(Operation::insert(row("p", "r", &old()))).await.expect("inserted");
    assert!(matches!(written.status, 201 | 204), "{written:?}");
    let row = s.get("p", "r").await.expect("the row is there");
    assert_eq!((row.partition_key(), row.row_key()), ("p", "r"));
    assert_eq!(s.properties("p", "r").await, expected(&old()));
}

/// 3: insert of an existing entity is 409 `EntityAlreadyExists`.
pub async fn insert_conflict(s: &Setup) {
    s.given("p", "r", &old()).await;
    let error = refused(s.one(Operation::insert(bare("p", "r"))).await, 409, "EntityAlreadyExists");
    assert!(error.is_conflict());
}

/// 3: a failed insert changes nothing, the Timestamp included.
pub async fn insert_conflict_changes_nothing(s: &Setup) {
    s.given("p", "r", &old()).await;
    let before = s.get("p", "r").await;
    let insert = Operation::insert(row("p", "r", &[("Set", 2.into())]));
    assert!(s.one(insert).await.is_err());
    assert_eq!(s.get("p", "r").await, before);
}

/// 3: a read of a missing entity finds nothing.
pub async fn read_missing(s: &Setup) {
    s.given("p", "r", &[]).await;
    assert!(s.get("p", "other").await.is_none());
    assert!(s.get("other", "r").await.is_none());
}

/// 3: replace is 204 and removes the properties that are not given.
pub async fn replace_removes_absent(s: &Setup) {
    s.given("p", "r", &old()).await;
    let replace = Operation::replace(row("p", "r", &[("Set", 2.into())]), any());
    assert_eq!(s.one(replace).await.expect("replaced").status, 204);
    assert_eq!(s.properties("p", "r").await, expected(&[("Set", 2.into())]));
}

/// 3: replace of a missing entity is 404 `ResourceNotFound` and creates nothing.
pub async fn replace_missing(s: &Setup) {
    let error =
        refused(s.one(Operation::replace(bare("p", "r"), any())).await, 404, "ResourceNotFound");
    assert!(error.is_not_found());
    assert!(s.get("p", "r").await.is_none());
}

/// 3: merge is 204, sets the given properties and keeps the others.
pub async fn merge_keeps_absent(s: &Setup) {
    s.given("p", "r", &old()).await;
    let merge = Operation::merge(row("p", "r", &[("Set", 2.into()), ("New", 3.into())]), any());
    assert_eq!(s.one(merge).await.expect("merged").status, 204);
    let now = [("Kept", 1.into()), ("Set", 2.into()), ("New", 3.into())];
    assert_eq!(s.properties("p", "r").await, expected(&now));
}

/// 3: merge of a missing entity is 404 `ResourceNotFound` and creates nothing.
pub async fn merge_missing(s: &Setup) {
    refused(s.one(Operation::merge(bare("p", "r"), any())).await, 404, "ResourceNotFound");
    assert!(s.get("p", "r").await.is_none());
}

/// 2.1: a merge may change a property's type.
pub async fn merge_changes_type(s: &Setup) {
    s.given("p", "r", &[("Set", 1.into())]).await;
    let merge = Operation::merge(row("p", "r", &[("Set", "one".into())]), any());
    s.one(merge).await.expect("merged");
    assert_eq!(s.properties("p", "r").await, expected(&[("Set", "one".into())]));
}

/// 2.2: property names in a merge are case-sensitive.
pub async fn merge_is_case_sensitive(s: &Setup) {
    s.given("p", "r", &[("Set", 1.into())]).await;
    let merge = Operation::merge(row("p", "r", &[("set", 2.into())]), any());
    s.one(merge).await.expect("merged");
    let now = [("Set", 1.into()), ("set", 2.into())];
    assert_eq!(s.properties("p", "r").await, expected(&now));
}

/// 3: insert-or-replace creates a missing entity, 204.
pub async fn insert_or_replace_creates(s: &Setup) {
    let insert_or_replace = Operation::insert_or_replace(row("p", "r", &old()));
    assert_eq!(s.one(insert_or_replace).await.expect("created").status, 204);
    assert_eq!(s.properties("p", "r").await, expected(&old()));
}

/// 3: insert-or-replace puts an entity in place of the existing one, 204.
pub async fn insert_or_replace_replaces(s: &Setup) {
    s.given("p", "r", &old()).await;
    let insert_or_replace = Operation::insert_or_replace(row("p", "r", &[("Set", 2.into())]));
    assert_eq!(s.one(insert_or_replace).await.expect("replaced").status, 204);
    assert_eq!(s.properties("p", "r").await, expected(&[("Set", 2.into())]));
}

/// 3: insert-or-merge creates a missing entity, 204.
pub async fn insert_or_merge_creates(s: &Setup) {
    let insert_or_replace = Operation::insert_or_merge(row("p", "r", &old()));
    assert_eq!(s.one(insert_or_replace).await.expect("created").status, 204);
    assert_eq!(s.properties("p", "r").await, expected(&old()));
}

/// 3: insert-or-merge sets properties of an existing entity, 204.
pub async fn insert_or_merge_merges(s: &Setup) {
    s.given("p", "r", &old()).await;
    let insert_or_replace = Operation::insert_or_merge(row("p", "r", &[("Set", 2.into())]));
    assert_eq!(s.one(insert_or_replace).await.expect("merged").status, 204);
    let now = [("Kept", 1.into()), ("Set", 2.into())];
    assert_eq!(s.properties("p", "r").await, expected(&now));
}

/// 3: delete is 204, has no ETag, and the entity is gone from reads and queries.
pub async fn delete_removes(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let written = s.one(delete("p", "b", any())).await.expect("deleted");
    assert_eq!((written.status, written.etag), (204, None));
    assert!(s.get("p", "b").await.is_none());
    s.finds("", &["a", "c"]).await;
}

/// 3: delete of a missing entity is 404 `ResourceNotFound`.
pub async fn delete_missing(s: &Setup) {
    refused(s.one(delete("p", "r", any())).await, 404, "ResourceNotFound");
}

/// 3: a second delete is 404 `ResourceNotFound`.
pub async fn delete_twice(s: &Setup) {
    s.given("p", "r", &[]).await;
    s.one(delete("p", "r", any())).await.expect("deleted");
    refused(s.one(delete("p", "r", any())).await, 404, "ResourceNotFound");
}

/// 3: a deleted entity can be inserted again and has nothing of the old one.
pub async fn insert_after_delete(s: &Setup) {
    s.given("p", "r", &old()).await;
    s.one(delete("p", "r", any())).await.expect("deleted");
    s.given("p", "r", &[("New", 1.into())]).await;
    assert_eq!(s.properties("p", "r").await, expected(&[("New", 1.into())]));
}

macro_rules! without_a_table {
    ($($name:ident: $verb:literal, $operation:expr;)*) => {
        $(#[doc = concat!("3: ", $verb, " in a missing table is 404 `TableNotFound`.")]
        pub async fn $name(s: &Setup) {
            let missing = s.at(&s.fresh_name());
            let error = refused(missing.one($operation).await, 404, "TableNotFound");
            assert!(error.is_not_found());
        })*
    };
}

without_a_table! {
    insert_without_table: "insert", Operation::insert(bare("p", "r"));
    replace_without_table: "replace", Operation::replace(bare("p", "r"), any());
    merge_without_table: "merge", Operation::merge(bare("p", "r"), any());
    insert_or_replace_without_table: "insert-or-replace", Operation::insert_or_replace(bare("p", "r"));
    insert_or_merge_without_table: "insert-or-merge", Operation::insert_or_merge(bare("p", "r"));
    delete_without_table: "delete", delete("p", "r", any());
}

/// 3: a read in a missing table is 404 `TableNotFound`.
pub async fn read_without_table(s: &Setup) {
    refused(s.at(&s.fresh_name()).try_get("p", "r").await, 404, "TableNotFound");
}

/// 3: a query of a missing table is 404 `TableNotFound`.
pub async fn query_without_table(s: &Setup) {
    let missing = s.at(&s.fresh_name());
    let result = missing.try_page(&super::setup::filter(""), None, None).await;
    refused(result, 404, "TableNotFound");
}

/// 2.3: entities of one RowKey in two partitions are two entities.
pub async fn partitions_are_apart(s: &Setup) {
    s.given("p", "r", &[("P", 1.into())]).await;
    s.given("q", "r", &[("P", 2.into())]).await;
    s.one(delete("p", "r", any())).await.expect("deleted");
    assert_eq!(s.properties("q", "r").await, expected(&[("P", 2.into())]));
}

/// 2.3: PartitionKey and RowKey are not one text: where the one ends matters.
pub async fn keys_are_not_joined(s: &Setup) {
    s.given("a", "bc", &[]).await;
    assert!(s.get("ab", "c").await.is_none());
    assert!(s.get("abc", "").await.is_none());
    assert!(s.get("", "abc").await.is_none());
}

/// 3: each kind of write leaves the version that it reports.
pub async fn writes_report_their_version(s: &Setup) {
    let writes = [
        Operation::insert(row("p", "r", &old())),
        Operation::replace(row("p", "r", &old()), any()),
        Operation::merge(row("p", "r", &[]), any()),
        Operation::insert_or_replace(row("p", "r", &old())),
        Operation::insert_or_merge(row("p", "r", &old())),
    ];
    for write in writes {
        let written = s.one(write).await.expect("written");
        let row = s.get("p", "r").await.expect("the row is there");
        assert_eq!(row.etag(), Some(etag(&written)));
    }
}
