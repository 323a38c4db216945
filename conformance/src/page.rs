//! Pages and continuation tokens.

use crate::setup::{Setup, bare, delete, filter, refused, row_keys};
use entable_core::{
    backend::layer::{FaultInjector, InjectedFault, RequestKind},
    batch::{Condition, Operation},
    page::Continuation,
};

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{at:05}")).collect()
}

/// 4.1: a page has at most 1,000 entities, and a continuation where there are more.
pub async fn page_of_a_thousand(s: &Setup) {
    s.given_rows("p", &numbered(1001)).await;
    let page = s.page(&filter(""), None, None).await;
    assert!(page.rows.len() <= 1000 && page.next.is_some());
    let (rows, pages) = s.pages(&filter(""), None).await;
    assert_eq!(row_keys(&rows), numbered(1001));
    assert!(pages >= 2);
}

/// 4.1: a page that ends at the end has no continuation.
pub async fn page_ends_at_the_end(s: &Setup) {
    s.given_rows("p", &numbered(1000)).await;
    let page = s.page(&filter("PartitionKey eq 'p'"), None, None).await;
    assert_eq!((page.rows.len(), page.next), (1000, None));
}

/// 4.1: `$top` bounds the page and leaves a continuation where there is more.
pub async fn top_bounds_the_page(s: &Setup) {
    s.given_rows("p", &numbered(10)).await;
    let page = s.page(&filter(""), Some(3), None).await;
    assert_eq!(row_keys(&page.rows), numbered(3));
    assert!(page.next.is_some());
}

/// 4.1: `$top` that takes exactly what is there leaves no continuation.
pub async fn top_at_the_end(s: &Setup) {
    s.given_rows("p", &numbered(3)).await;
    for top in [3, 4, 1000] {
        let page = s.page(&filter("PartitionKey eq 'p'"), Some(top), None).await;
        assert_eq!((page.rows.len(), page.next), (3, None));
    }
}

/// 4.1: `$top` over 1,000 is refused.
pub async fn top_too_large(s: &Setup) {
    let result = s.try_page(&filter(""), Some(1001), None).await;
    assert!(refused(result, 400, "InvalidInput").is_invalid());
}

/// 4.1: `$top` counts matches, not the rows that are looked at.
pub async fn top_counts_matches(s: &Setup) {
    for at in 0..10 {
        s.given("p", &at.to_string(), &[("Even", (at % 2 == 0).into())]).await;
    }
    let (rows, _) = s.pages(&filter("Even"), Some(2)).await;
    assert_eq!(row_keys(&rows), ["0", "2", "4", "6", "8"]);
    let first = s.page(&filter("Even"), Some(2), None).await;
    assert!(first.rows.len() <= 2);
}

/// 4.1: pages of any size give every row once.
pub async fn pages_of_any_size(s: &Setup) {
    s.given_rows("p", &numbered(5)).await;
    s.given_rows("q", &numbered(6)).await;
    let all = [numbered(5), numbered(6)].concat();
    for top in 1..=12 {
        let (rows, _) = s.pages(&filter(""), Some(top)).await;
        assert_eq!(row_keys(&rows), all, "in pages of {top}");
    }
}

/// 4.1: a continuation names the row that comes next.
pub async fn token_names_the_next_row(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let first = s.page(&filter(""), Some(2), None).await;
    let second = s.page(&filter(""), Some(2), first.next.as_ref()).await;
    assert_eq!((row_keys(&second.rows), second.next), (vec!["c"], None));
}

/// 4.1: a continuation outlives the row that it names.
pub async fn token_survives_deletion(s: &Setup) {
    s.given_rows("p", &["a", "b", "c", "d"]).await;
    let first = s.page(&filter(""), Some(2), None).await;
    s.one(delete("p", "c", Condition::Any)).await.expect("deleted");
    let second = s.page(&filter(""), Some(2), first.next.as_ref()).await;
    assert_eq!((row_keys(&second.rows), second.next), (vec!["d"], None));
}

/// 4.1: a continuation outlives all rows that were left.
pub async fn token_survives_deletion_of_the_rest(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let first = s.page(&filter(""), Some(1), None).await;
    s.all_of(["a", "b", "c"].map(|key| delete("p", key, Condition::Any))).await.expect("deleted");
    let second = s.page(&filter(""), Some(1), first.next.as_ref()).await;
    assert_eq!((second.rows.len(), second.next), (0, None));
}

/// 4.1: a continuation is taken more than once and gives the same page.
pub async fn token_is_no_session(s: &Setup) {
    s.given_rows("p", &numbered(6)).await;
    let first = s.page(&filter(""), Some(2), None).await;
    let again = s.page(&filter(""), Some(2), first.next.as_ref()).await;
    let twice = s.page(&filter(""), Some(2), first.next.as_ref()).await;
    assert_eq!((&again.rows, &again.next), (&twice.rows, &twice.next));
}

/// 4.1: the page size may change from page to page.
pub async fn top_may_change(s: &Setup) {
    s.given_rows("p", &numbered(9)).await;
    let first = s.page(&filter(""), Some(2), None).await;
    let second = s.page(&filter(""), Some(5), first.next.as_ref()).await;
    assert_eq!(row_keys(&second.rows), &numbered(7)[2..]);
}

/// 4.1: a continuation without a RowKey begins with the partition.
pub async fn token_without_row_key(s: &Setup) {
    s.given_rows("p", &["a"]).await;
    s.given_rows("q", &["b", "c"]).await;
    let from = Continuation { partition_key: "q".to_owned(), row_key: None };
    let page = s.page(&filter(""), None, Some(&from)).await;
    assert_eq!(row_keys(&page.rows), ["b", "c"]);
}

/// 4.5: a row that is written ahead of the continuation appears.
pub async fn insert_ahead_appears(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let first = s.page(&filter(""), Some(2), None).await;
    s.given("p", "d", &[]).await;
    let second = s.page(&filter(""), None, first.next.as_ref()).await;
    assert_eq!(row_keys(&second.rows), ["c", "d"]);
}

/// 4.5: a row that is written behind the continuation does not appear.
pub async fn insert_behind_does_not_appear(s: &Setup) {
    s.given_rows("p", &["b", "c", "d"]).await;
    let first = s.page(&filter(""), Some(2), None).await;
    s.given("p", "a", &[]).await;
    let second = s.page(&filter(""), None, first.next.as_ref()).await;
    assert_eq!(row_keys(&second.rows), ["d"]);
}

/// 4.1: the filter holds on every page.
pub async fn filter_on_every_page(s: &Setup) {
    for at in 0..20 {
        s.given("p", &format!("{at:02}"), &[("Third", (at % 3 == 0).into())]).await;
    }
    let (rows, _) = s.pages(&filter("Third eq true and RowKey lt '16'"), Some(2)).await;
    assert_eq!(row_keys(&rows), ["00", "03", "06", "09", "12", "15"]);
}

/// 4.1: an empty table is one page without rows and without a continuation.
pub async fn empty_table(s: &Setup) {
    let page = s.page(&filter(""), None, None).await;
    assert_eq!((page.rows.len(), page.next), (0, None));
}

/// 4.1: keys with any legal character come through a continuation.
pub async fn token_of_any_key(s: &Setup) {
    let keys = ["", " ", "!", "%", "%25", "&=+", "'", "''", "a", "\u{e9}", "\u{1f600}", "\u{fffd}"];
    s.given_rows("p'%", &keys).await;
    let (rows, pages) = s.pages(&filter(""), Some(1)).await;
    assert_eq!(row_keys(&rows), keys);
    assert_eq!(pages, keys.len());
}

/// 4.1: a page may be empty and have a continuation; what follows is complete.
pub async fn empty_page_with_a_token(s: &Setup) {
    s.given_rows("p", &["a", "b", "c"]).await;
    let fault = FaultInjector::around(s.backend());
    fault.inject(RequestKind::Scan, 0, InjectedFault::EmptyPage);
    fault.inject(RequestKind::Scan, 2, InjectedFault::EmptyPage);
    let (rows, pages) = s.through(fault).pages(&filter(""), Some(2)).await;
    assert_eq!((row_keys(&rows), pages), (vec!["a", "b", "c"], 4));
}

/// 4.1: every page may come empty once; what is read in the end is complete.
pub async fn every_page_empty_once(s: &Setup) {
    s.given_rows("p", &numbered(7)).await;
    let fault = FaultInjector::around(s.backend());
    fault.empty_pages(true);
    let (rows, pages) = s.through(fault).pages(&filter(""), Some(2)).await;
    assert_eq!((row_keys(&rows), pages), (numbered(7).iter().map(String::as_str).collect(), 8));
}

/// 4.1: a page may be shorter than was asked for and have a continuation.
pub async fn short_pages(s: &Setup) {
    s.given_rows("p", &numbered(7)).await;
    let fault = FaultInjector::around(s.backend());
    fault.shorten_pages(Some(3));
    let (rows, pages) = s.through(fault).pages(&filter(""), Some(100)).await;
    assert_eq!((row_keys(&rows), pages), (numbered(7).iter().map(String::as_str).collect(), 3));
}

/// 4.5: a page shows what was written before it was asked for.
pub async fn page_reads_the_latest(s: &Setup) {
    s.given_rows("p", &["a"]).await;
    s.finds("", &["a"]).await;
    s.one(Operation::insert(bare("p", "b"))).await.expect("inserted");
    s.finds("", &["a", "b"]).await;
}
