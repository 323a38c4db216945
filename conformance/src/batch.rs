//! Entity group transactions: what they may contain, and that they are atomic.

use crate::setup::{Setup, bare, delete, etag, expected, filter, refused, row, version};
use entable_core::batch::{Condition, Operation};

fn insert(row_key: &str) -> Operation {
    Operation::insert(bare("p", row_key))
}

fn inserts(count: usize) -> impl Iterator<Item = Operation> {
    (0..count).map(|at| insert(&format!("{at:03}")))
}

/// 5.1: an entity group transaction has up to 100 operations.
pub async fn hundred_operations(s: &Setup) {
    assert_eq!(s.all_of(inserts(100)).await.expect("carried out").len(), 100);
    assert_eq!(s.matching("").await.len(), 100);
}

/// 5.1: the 101st operation is refused with `InvalidInput` at index 99, and nothing is written.
pub async fn hundred_and_first_operation(s: &Setup) {
    let error = refused(s.all_of(inserts(101)).await, 400, "InvalidInput");
    assert_eq!((error.is_too_large(), error.failed_index()), (true, Some(99)));
    s.finds("", &[]).await;
}

/// 5.1: an operation in another partition is refused, and is named.
pub async fn other_partition(s: &Setup) {
    let operations = [insert("a"), insert("b"), Operation::insert(bare("q", "c"))];
    let error = refused(s.all_of(operations).await, 400, "CommandsInBatchActOnDifferentPartitions");
    assert_eq!(error.failed_index(), Some(2));
    s.finds("", &[]).await;
}

/// 5.1: partitions differ by case.
pub async fn other_partition_by_case(s: &Setup) {
    let operations = [insert("a"), Operation::insert(bare("P", "b"))];
    let error = refused(s.all_of(operations).await, 400, "CommandsInBatchActOnDifferentPartitions");
    assert_eq!(error.failed_index(), Some(1));
}

/// 5.1: an entity that appears twice is refused with `InvalidDuplicateRow`, and is named.
pub async fn same_row_twice(s: &Setup) {
    let error = refused(
        s.all_of([insert("a"), insert("b"), insert("a")]).await,
        400,
        "InvalidDuplicateRow",
    );
    assert_eq!(error.failed_index(), Some(2));
    s.finds("", &[]).await;
}

/// 5.1: an entity appears once under all verbs together.
pub async fn same_row_under_two_verbs(s: &Setup) {
    s.given("p", "a", &[]).await;
    let again =
        [Operation::merge(bare("p", "a"), Condition::Any), delete("p", "a", Condition::Any)];
    let error = refused(s.all_of(again).await, 400, "InvalidDuplicateRow");
    assert_eq!(error.failed_index(), Some(1));
    s.finds("", &["a"]).await;
}

/// 5.1: RowKeys that differ by case are two entities.
pub async fn rows_differ_by_case(s: &Setup) {
    s.all_of([insert("A"), insert("a")]).await.expect("carried out");
    s.finds("", &["A", "a"]).await;
}

/// 5.2: a batch whose composition is wrong is refused before anything is carried out.
pub async fn composition_comes_first(s: &Setup) {
    s.given("p", "a", &[]).await;
    let error = refused(
        s.all_of([insert("a"), insert("b"), insert("b")]).await,
        400,
        "InvalidDuplicateRow",
    );
    assert_eq!(error.failed_index(), Some(2));
}

/// 5.2: the error names the entity that exceeds a limit, and nothing is written.
pub async fn entity_over_a_limit(s: &Setup) {
    let large = row("p", "b", &[("P", "x".repeat(40_000).into())]);
    let error = refused(
        s.all_of([insert("a"), Operation::insert(large)]).await,
        400,
        "PropertyValueTooLarge",
    );
    assert_eq!(error.failed_index(), Some(1));
    s.finds("", &[]).await;
}

/// 5.2: a key that is out of range is named, and nothing is written.
pub async fn key_out_of_range(s: &Setup) {
    let error =
        refused(s.all_of([insert("a"), insert("b"), insert("c/d")]).await, 400, "OutOfRangeInput");
    assert_eq!(error.failed_index(), Some(2));
    s.finds("", &[]).await;
}

macro_rules! all_or_nothing {
    ($($doc:literal $name:ident: $operation:expr, $status:literal, $code:literal;)*) => {
        $(#[doc = concat!("5.2: ", $doc, " fails the transaction by its index, and nothing is written.")]
        pub async fn $name(s: &Setup) {
            s.given("p", "b", &[("P", 1.into())]).await;
            let before = s.get("p", "b").await;
            let operations = [insert("a"), $operation, insert("d")];
            let error = refused(s.all_of(operations).await, $status, $code);
            assert_eq!(error.failed_index(), Some(1));
            s.finds("", &["b"]).await;
            assert_eq!(s.get("p", "b").await, before);
        })*
    };
}

fn stale() -> Condition {
    Condition::Match(entable_core::row::ETag::from_timestamp(entable_core::edm::Ticks::UNIX_EPOCH))
}

all_or_nothing! {
    "an insert of an existing entity" conflict_rolls_back:
        insert("b"), 409, "EntityAlreadyExists";
    "a replace of a missing entity" missing_replace_rolls_back:
        Operation::replace(bare("p", "c"), Condition::Any), 404, "ResourceNotFound";
    "a merge of a missing entity" missing_merge_rolls_back:
        Operation::merge(bare("p", "c"), Condition::Any), 404, "ResourceNotFound";
    "a delete of a missing entity" missing_delete_rolls_back:
        delete("p", "c", Condition::Any), 404, "ResourceNotFound";
    "a replace under another ETag" stale_replace_rolls_back:
        Operation::replace(bare("p", "b"), stale()), 412, "UpdateConditionNotSatisfied";
    "a merge under another ETag" stale_merge_rolls_back:
        Operation::merge(bare("p", "b"), stale()), 412, "UpdateConditionNotSatisfied";
    "a delete under another ETag" stale_delete_rolls_back:
        delete("p", "b", stale()), 412, "UpdateConditionNotSatisfied";
}

/// 5.2: of several failing operations the first is named.
pub async fn first_failure_is_named(s: &Setup) {
    s.given("p", "d", &[]).await;
    let operations = [
        insert("a"),
        delete("p", "b", Condition::Any),
        delete("p", "c", Condition::Any),
        insert("d"),
    ];
    let error = refused(s.all_of(operations).await, 404, "ResourceNotFound");
    assert_eq!(error.failed_index(), Some(1));
}

/// 5.2: a failure of the last of 100 operations undoes the other 99.
pub async fn last_failure_undoes_all(s: &Setup) {
    s.given("p", "x", &[]).await;
    let operations = inserts(99).chain([insert("x")]);
    let error = refused(s.all_of(operations).await, 409, "EntityAlreadyExists");
    assert_eq!(error.failed_index(), Some(99));
    s.finds("", &["x"]).await;
}

/// 5.1: one transaction can contain all six verbs.
pub async fn all_verbs_together(s: &Setup) {
    let one = [("P", 1.into())];
    for key in ["merged", "replaced", "removed"] {
        s.given("p", key, &one).await;
    }
    let two = |key: &str| row("p", key, &[("Q", 2.into())]);
    let written = s.all_of([
        Operation::insert(two("inserted")),
        Operation::merge(two("merged"), Condition::Any),
        Operation::replace(two("replaced"), Condition::Any),
        delete("p", "removed", Condition::Any),
        Operation::insert_or_merge(two("upmerged")),
        Operation::insert_or_replace(two("upreplaced")),
    ]);
    let written = written.await.expect("carried out");
    assert!(written.iter().all(|one| matches!(one.status, 201 | 204)), "{written:?}");
    assert!(written.iter().map(|one| one.etag.is_some()).eq([true, true, true, false, true, true]));
    s.finds("", &["inserted", "merged", "replaced", "upmerged", "upreplaced"]).await;
    assert_eq!(s.properties("p", "merged").await, expected(&[("P", 1.into()), ("Q", 2.into())]));
    assert_eq!(s.properties("p", "replaced").await, expected(&[("Q", 2.into())]));
}

/// 5.2: the answers come in the order of the operations, each with its row's ETag.
pub async fn answers_in_order(s: &Setup) {
    let keys = ["c", "a", "b"];
    let written = s.all_of(keys.map(insert)).await.expect("carried out");
    for (key, written) in keys.iter().zip(&written) {
        let row = s.get("p", key).await.expect("the row is there");
        assert_eq!(row.etag(), written.etag);
    }
}

/// 5.1: conditions mean the same as in a single request.
pub async fn conditions_in_a_batch(s: &Setup) {
    let (a, b) = (s.given("p", "a", &[]).await, s.given("p", "b", &[]).await);
    let set = |key: &str| row("p", key, &[("P", 1.into())]);
    let operations = [Operation::replace(set("a"), version(&a)), delete("p", "b", version(&b))];
    let written = s.all_of(operations).await.expect("the versions are the rows'");
    assert_ne!(etag(&written[0]), a);
    s.finds("P eq 1", &["a"]).await;
}

/// 5: a transaction of one operation is carried out like the operation.
pub async fn single_operation(s: &Setup) {
    s.all_of([insert("a")]).await.expect("carried out");
    let error = refused(s.all_of([insert("a")]).await, 409, "EntityAlreadyExists");
    assert_eq!(error.failed_index().unwrap_or(0), 0);
}

/// 5.2: a transaction in a missing table is 404 `TableNotFound`.
pub async fn batch_without_table(s: &Setup) {
    let missing = s.at(&s.fresh_name());
    let error = refused(missing.all_of(inserts(2)).await, 404, "TableNotFound");
    assert_eq!(error.failed_index().unwrap_or(0), 0);
}

fn megabytes(at: usize) -> Operation {
    let names: Vec<String> = (0..12).map(|at| format!("P{at}")).collect();
    let value = vec![b'x'; 64 * 1024];
    let large: Vec<_> = names.iter().map(|n| (n.as_str(), value.clone().into())).collect();
    Operation::insert(row("p", &at.to_string(), &large))
}

/// 5.1: a transaction below 4 MiB is carried out.
pub async fn below_four_megabytes(s: &Setup) {
    s.all_of((0..3).map(megabytes)).await.expect("carried out");
    s.finds("", &["0", "1", "2"]).await;
}

/// 5.1: a transaction of more than 4 MiB is 413 `RequestBodyTooLarge`, and nothing is written.
pub async fn above_four_megabytes(s: &Setup) {
    let error = refused(s.all_of((0..5).map(megabytes)).await, 413, "RequestBodyTooLarge");
    assert!(error.is_too_large());
    s.finds("", &[]).await;
}

/// 4.5: a transaction is isolated: no reader of the partition sees half of it.
pub async fn isolated(s: &Setup) {
    let write = |s: Setup, n: i32| async move {
        let rows = ["a", "b", "c"].map(|key| row("p", key, &[("N", n.into())]));
        s.all_of(rows.map(Operation::insert_or_replace)).await.expect("carried out");
    };
    write(s.clone(), 0).await;
    let writer = s.clone();
    let writing = tokio::spawn(async move {
        for n in 1..100 {
            write(writer.clone(), n).await;
        }
    });
    for _ in 0..100 {
        let page = s.page(&filter("PartitionKey eq 'p'"), None, None).await;
        let values: Vec<_> = page.rows.iter().map(super::setup::properties).collect();
        assert!(values.len() == 3 && values.iter().all(|value| *value == values[0]), "{values:?}");
        tokio::task::yield_now().await;
    }
    writing.await.expect("the writer ends");
}
