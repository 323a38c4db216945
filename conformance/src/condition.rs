//! If-Match: the table of section 3 by its columns, and the versions of section 2.6.

use std::collections::HashSet;

use crate::setup::{Setup, bare, delete, etag, expected, refused, row, version};
use entable_core::{
    batch::{Condition, Operation},
    row::ETag,
};

fn replace(condition: Condition) -> Operation {
    Operation::replace(row("p", "r", &[("P", 2.into())]), condition)
}

fn merge(condition: Condition) -> Operation {
    Operation::merge(row("p", "r", &[("P", 2.into())]), condition)
}

fn remove(condition: Condition) -> Operation {
    delete("p", "r", condition)
}

/// A version that the row had and has no more.
async fn stale(s: &Setup) -> ETag {
    let first = s.given("p", "r", &[("P", 0.into())]).await;
    let write = Operation::insert_or_replace(row("p", "r", &[("P", 1.into())]));
    s.one(write).await.expect("written");
    first
}

macro_rules! conditional {
    ($($verb:ident: $matching:ident $stale:ident $unchanged:ident $missing:ident $malformed:ident;)*) => {$(
        #[doc = concat!("3: ", stringify!($verb), " with the row's own ETag is 204.")]
        pub async fn $matching(s: &Setup) {
            let own = s.given("p", "r", &[("P", 1.into())]).await;
            assert_eq!(s.one($verb(version(&own))).await.expect("carried out").status, 204);
        }

        #[doc = concat!("3: ", stringify!($verb), " with another ETag is 412 `UpdateConditionNotSatisfied`.")]
        pub async fn $stale(s: &Setup) {
            let old = stale(s).await;
            let error = refused(s.one($verb(version(&old))).await, 412, "UpdateConditionNotSatisfied");
            assert!(error.is_precondition_failed());
        }

        #[doc = concat!("3: ", stringify!($verb), " that fails its condition changes nothing.")]
        pub async fn $unchanged(s: &Setup) {
            let old = stale(s).await;
            let before = s.get("p", "r").await;
            assert!(s.one($verb(version(&old))).await.is_err());
            assert_eq!(s.get("p", "r").await, before);
        }

        #[doc = concat!("3: ", stringify!($verb), " of a missing row under an ETag is 404, not 412.")]
        pub async fn $missing(s: &Setup) {
            let old = stale(s).await;
            s.one(remove(Condition::Any)).await.expect("deleted");
            refused(s.one($verb(version(&old))).await, 404, "ResourceNotFound");
        }

        #[doc = concat!("3: ", stringify!($verb), " under a text that is no weak ETag is 400 `InvalidInput`.")]
        pub async fn $malformed(s: &Setup) {
            s.given("p", "r", &[("P", 1.into())]).await;
            for text in ["", "\"strong\"", "W/", "garbage"] {
                let condition = Condition::Match(ETag::from(text));
                refused(s.one($verb(condition)).await, 400, "InvalidInput");
            }
        }
    )*};
}

conditional! {
    replace: replace_matching replace_stale replace_stale_changes_nothing
        replace_missing_is_not_found_first replace_malformed_etag;
    merge: merge_matching merge_stale merge_stale_changes_nothing
        merge_missing_is_not_found_first merge_malformed_etag;
    remove: delete_matching delete_stale delete_stale_changes_nothing
        delete_missing_is_not_found_first delete_malformed_etag;
}

/// 3: `If-Match: *` takes any version.
pub async fn any_version_replaces(s: &Setup) {
    stale(s).await;
    s.one(replace(Condition::Any)).await.expect("replaced");
    assert_eq!(s.properties("p", "r").await, expected(&[("P", 2.into())]));
}

/// 3: the two upserts have no condition and take any version.
pub async fn insert_or_replace_takes_any_version(s: &Setup) {
    stale(s).await;
    for write in [Operation::insert_or_merge, Operation::insert_or_replace] {
        assert_eq!(s.one(write(bare("p", "r"))).await.expect("written").status, 204);
    }
}

/// 2.6: a chain of writes, each under the version that the last one reported.
pub async fn versions_chain(s: &Setup) {
    let mut last = s.given("p", "r", &[("P", 0.into())]).await;
    for at in 1..20 {
        let write = Operation::replace(row("p", "r", &[("P", at.into())]), version(&last));
        last = etag(&s.one(write).await.expect("the version is the row's"));
    }
    assert_eq!(s.properties("p", "r").await, expected(&[("P", 19.into())]));
}

/// 2.6: an ETag is opaque text: sent back byte for byte it is the same version.
pub async fn version_as_text(s: &Setup) {
    let own = s.given("p", "r", &[("P", 1.into())]).await;
    let text = own.to_string();
    assert!(text.starts_with("W/\"") && text.ends_with('"'), "{text}");
    s.one(replace(version(&ETag::from(text.as_str())))).await.expect("replaced");
}

/// 2.6: no two writes of one entity have the same ETag.
pub async fn versions_are_unique(s: &Setup) {
    let mut seen = HashSet::from([s.given("p", "r", &[]).await]);
    for at in 0..50 {
        let write = match at % 4 {
            0 => Operation::replace(bare("p", "r"), Condition::Any),
            1 => Operation::merge(bare("p", "r"), Condition::Any),
            2 => Operation::insert_or_replace(bare("p", "r")),
            _ => Operation::insert_or_merge(bare("p", "r")),
        };
        let written = s.one(write).await.expect("written");
        assert!(seen.insert(etag(&written)), "{written:?}");
    }
}

/// 2.6: the ETag of an answer to a write is derived from the Timestamp, which the row then has.
pub async fn written_timestamp(s: &Setup) {
    let insert = Operation::insert(bare("p", "r"));
    let written = s.one(insert).await.expect("written");
    let stored = s.get("p", "r").await.and_then(|row| row.timestamp());
    assert!(written.timestamp.is_some() && written.timestamp == stored, "{written:?}, {stored:?}");
    let delete = s.one(Operation::delete("p", "r", Condition::Any).expect("keys")).await;
    assert_eq!(delete.expect("deleted").timestamp, None);
}

/// 2.6: Timestamps of one entity rise with each write.
pub async fn timestamps_rise(s: &Setup) {
    s.given("p", "r", &[]).await;
    let mut last = s.get("p", "r").await.and_then(|row| row.timestamp()).expect("a Timestamp");
    for _ in 0..50 {
        s.one(Operation::insert_or_replace(bare("p", "r"))).await.expect("written");
        let now = s.get("p", "r").await.and_then(|row| row.timestamp()).expect("a Timestamp");
        assert!(now > last, "{now} after {last}");
        last = now;
    }
}

/// 2.6: an entity that is deleted and inserted again is in another version than before.
pub async fn versions_differ_across_delete(s: &Setup) {
    let first = s.given("p", "r", &[]).await;
    s.one(remove(version(&first))).await.expect("deleted");
    let second = s.given("p", "r", &[]).await;
    assert_ne!(first, second);
    refused(s.one(remove(version(&first))).await, 412, "UpdateConditionNotSatisfied");
}

/// 2.6: reads and queries leave the version alone, and agree on it.
pub async fn reading_keeps_the_version(s: &Setup) {
    let own = s.given("p", "r", &[]).await;
    for _ in 0..3 {
        assert_eq!(s.get("p", "r").await.and_then(|row| row.etag()), Some(own.clone()));
        assert_eq!(s.matching("").await[0].etag(), Some(own.clone()));
    }
}

/// 2.6: writing one row leaves the version of its neighbours alone.
pub async fn versions_are_per_entity(s: &Setup) {
    let own = s.given("p", "r", &[]).await;
    s.given("p", "s", &[]).await;
    s.one(delete("p", "s", Condition::Any)).await.expect("deleted");
    s.one(replace(version(&own))).await.expect("the version is still the row's");
}

/// 2.6: the Timestamp is the time of the write.
pub async fn timestamp_is_recent(s: &Setup) {
    s.given("p", "r", &[]).await;
    let at = s.get("p", "r").await.and_then(|row| row.timestamp()).expect("a Timestamp");
    let now = entable_core::clock::Clock::now(&entable_core::clock::SystemClock);
    const HOUR: i64 = 3600 * 10_000_000;
    assert!((now.get() - at.get()).abs() < HOUR, "{at} is not about {now}");
}
