//! The order of rows: ordinal, by UTF-16 units, PartitionKey before RowKey.

use crate::setup::{Setup, filter, row_keys};
use entable_core::row::Row;

/// Inserts rows whose RowKeys are in order, last first, and expects them in order.
async fn row_keys_sort(s: &Setup, in_order: &[&str]) {
    for row_key in in_order.iter().rev() {
        s.given("p", row_key, &[]).await;
    }
    s.finds("PartitionKey eq 'p'", in_order).await;
    s.finds("", in_order).await;
}

/// Inserts a row into each of partitions that are in order, last first.
async fn partitions_sort(s: &Setup, in_order: &[&str]) {
    for partition_key in in_order.iter().rev() {
        s.given(partition_key, "r", &[]).await;
    }
    let rows = s.matching("").await;
    let found: Vec<&str> = rows.iter().map(Row::partition_key).collect();
    assert_eq!(found, in_order);
}

macro_rules! orders {
    ($($doc:literal $rows:ident $partitions:ident: $keys:expr;)*) => {$(
        #[doc = concat!("4.1: RowKeys: ", $doc)]
        pub async fn $rows(s: &Setup) {
            row_keys_sort(s, &$keys).await;
        }

        #[doc = concat!("4.1: PartitionKeys: ", $doc)]
        pub async fn $partitions(s: &Setup) {
            partitions_sort(s, &$keys).await;
        }
    )*};
}

orders! {
    "ascending, whatever the order of insertion."
        rows_ascend partitions_ascend: ["a", "b", "c", "d"];
    "numbers are text and sort digit by digit."
        row_numbers_are_text partition_numbers_are_text: ["1", "10", "100", "2", "20", "3"];
    "capital letters stand before small ones."
        row_capitals_first partition_capitals_first: ["A", "B", "Z", "a", "b"];
    "the empty key is the first."
        row_empty_first partition_empty_first: ["", " ", "!", "0", "a"];
    "a prefix stands before what it begins."
        row_prefix_first partition_prefix_first: ["a", "a ", "a-", "aa", "ab", "b"];
    "punctuation sorts by its code, as no language would."
        row_punctuation partition_punctuation: ["!", "'", "-", "0", ":", "A", "_", "a", "~"];
    "characters beyond ASCII stand after it, by their code."
        row_non_ascii partition_non_ascii: ["z", "\u{a1}", "\u{e9}", "\u{3b1}", "\u{65e5}"];
    "a letter and its accent are not the accented letter."
        row_combining partition_combining: ["e", "e\u{301}", "f", "\u{e9}"];
    "characters of four bytes stand before U+E000, as their UTF-16 units do."
        row_surrogates partition_surrogates: ["\u{d7ff}", "\u{10000}", "\u{1f600}", "\u{10ffff}", "\u{e000}", "\u{fffd}"];
}

/// 4.1: all rows of a partition are adjacent; rows sort by PartitionKey first.
pub async fn partition_before_row(s: &Setup) {
    for (partition_key, row_key) in [("b", "1"), ("a", "2"), ("b", "0"), ("a", "1")] {
        s.given(partition_key, row_key, &[]).await;
    }
    s.finds("", &["1", "2", "0", "1"]).await;
}

/// 4.1: a partition precedes, with all its rows, the partitions whose keys begin with its key.
pub async fn partition_boundary(s: &Setup) {
    for (partition_key, row_key) in [("a", "zz"), ("aa", "b"), ("a!", "c"), ("a", "")] {
        s.given(partition_key, row_key, &[]).await;
    }
    s.finds("", &["", "zz", "c", "b"]).await;
}

/// 4.1: the order goes on from page to page.
pub async fn order_across_pages(s: &Setup) {
    let keys: Vec<String> = (0..40).map(|at| format!("{at:02}")).collect();
    s.given_rows("p", &keys.iter().rev().collect::<Vec<_>>()).await;
    let (rows, pages) = s.pages(&filter(""), Some(7)).await;
    assert_eq!(row_keys(&rows), keys);
    assert_eq!(pages, 6);
}

/// 4.1: a write to a row leaves its place.
pub async fn order_is_not_by_write(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let write = entable_core::batch::Operation::insert_or_replace(crate::setup::bare("p", "a"));
    s.one(write).await.expect("written");
    s.finds("", &["a", "b", "c"]).await;
}
