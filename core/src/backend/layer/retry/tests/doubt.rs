//! Tests that a retry finds the right result after a lost answer to a transaction, also if another
//! client wrote between two attempts.

use super::*;
use crate::backend::layer::retry::verdict::{WriteVerdict, judge_write_from_rows};

/// A transaction of an update, an insert and a delete.
async fn transaction(s: &Store) -> Batch {
    let one = s.write(Operation::insert(row("1", "old"))).await;
    let three = s.write(Operation::insert(row("3", "old"))).await;
    let mut batch = Batch::new("Rows");
    batch.push(Operation::replace(row("1", "new"), Condition::Match(one))).unwrap();
    batch.push(Operation::insert(row("2", "new"))).unwrap();
    batch.push(Operation::delete("p", "3", Condition::Match(three)).unwrap()).unwrap();
    s.plain.clear();
    batch
}

#[tokio::test(start_paused = true)]
async fn a_transaction_happens_once_or_is_said_to_be_open() {
    for error in open().into_iter().chain([busy()]) {
        let s = store(RetryPolicy::new()).await;
        let batch = transaction(&s).await;
        let text = error.to_string();
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(error.clone()));
        s.retry.apply(&batch).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!((s.writes(), s.text("2").await.as_deref()), (1, Some("new")));

        let s = store(RetryPolicy::new()).await;
        let batch = transaction(&s).await;
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error.clone()));
        let failed = s.retry.apply(&batch).await.unwrap_err();
        assert!(failed.is_ambiguous(), "{failed:?}");
        assert_eq!((failed.seen(), s.writes()), (Some(Seen::Equal), 1));
        assert_eq!(s.plain.count(), 1 + batch.len(), "each row is read once");

        let s = store(RetryPolicy::new().operation_ids(true)).await;
        let batch = transaction(&s).await;
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
        let written = s.retry.apply(&batch).await.unwrap();
        assert_eq!(s.writes(), 1);
        assert_eq!(written[0].etag, s.version("1").await);
        assert_eq!(written[1].etag, s.version("2").await);
        assert_eq!(written[2].etag, None);
    }
}

/// A store that is too busy is not asked for a hundred rows.
#[tokio::test(start_paused = true)]
async fn one_row_shows_that_a_transaction_was_refused() {
    for guarded in [true, false] {
        for error in open().into_iter().chain([busy()]) {
            let is_busy = error.is_throttled();
            let s = store(RetryPolicy::new()).await;
            let mut batch = Batch::new("Rows");
            for number in 0..100 {
                let row = row(&number.to_string(), "new");
                let upsert = Operation::insert_or_replace;
                batch.push(if guarded { Operation::insert(row) } else { upsert(row) }).unwrap();
            }
            s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(error));
            let result = s.retry.apply(&batch).await;
            let reads = s.plain.count() - s.writes();
            if guarded || is_busy {
                // The table's creation, and the first row.
                assert_eq!((result.unwrap().len(), s.writes(), reads), (100, 1, 2));
            } else {
                assert!(result.unwrap_err().is_ambiguous());
                assert_eq!(s.writes(), 0);
            }
        }
    }
}

/// The first row is free again, and another one is not: the store refuses the repeated transaction.
#[tokio::test(start_paused = true)]
async fn a_transaction_whose_first_row_was_deleted_since_is_open() {
    for error in open().into_iter().chain([busy()]) {
        let s = store(RetryPolicy::new()).await;
        let mut batch = Batch::new("Rows");
        batch.push(Operation::insert(row("1", "new"))).unwrap();
        batch.push(Operation::insert(row("2", "new"))).unwrap();
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
        let other = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let delete = Operation::delete("p", "1", Condition::Any).unwrap();
            s.plain.apply(&Batch::single("Rows", delete).unwrap()).await.unwrap();
        };
        let (result, ()) = tokio::join!(s.retry.apply(&batch), other);
        let failed = result.unwrap_err();
        assert!(failed.is_ambiguous(), "{failed:?}");
        assert_eq!(s.text("1").await, None);
    }
}

/// Another row of the transaction holds its id.
#[tokio::test(start_paused = true)]
async fn an_operation_id_in_any_row_proves_a_transaction() {
    for error in open().into_iter().chain([busy()]) {
        let s = store(RetryPolicy::new().operation_ids(true)).await;
        let mut batch = Batch::new("Rows");
        batch.push(Operation::insert_or_replace(row("1", "new"))).unwrap();
        batch.push(Operation::insert_or_replace(row("2", "new"))).unwrap();
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
        let other = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            s.write(Operation::insert_or_replace(row("1", "theirs"))).await;
        };
        let (result, ()) = tokio::join!(s.retry.apply(&batch), other);
        assert_eq!(result.unwrap()[0].etag, None);
        assert_eq!(s.text("1").await.as_deref(), Some("theirs"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_of_upserts_is_proved_by_its_content() {
    let s = store(RetryPolicy::new()).await;
    let mut batch = Batch::new("Rows");
    batch.push(Operation::insert_or_replace(row("1", "a"))).unwrap();
    batch.push(Operation::insert_or_merge(row("2", "b"))).unwrap();
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(open()[0].clone()));
    let written = s.retry.apply(&batch).await.unwrap();
    assert_eq!(written[1].etag, s.version("2").await);
}

/// A service may return properties in another order, and a zero without its sign.
#[test]
fn equal_content_proves_a_write_in_any_order_and_with_a_nan() {
    let row = |properties: [(&str, f64); 2]| {
        let mut row = Row::build("p", "r");
        properties.iter().for_each(|(name, value)| row.put(name, ValueRef::Double(*value)));
        row.finish().unwrap()
    };
    let written = row([("One", f64::NAN), ("Two", -0.0)]);
    let batch = Batch::single("Rows", Operation::insert_or_replace(written)).unwrap();
    for (found, is_proof) in [
        (row([("Two", -0.0), ("One", f64::NAN)]), true),
        (row([("Two", 0.0), ("One", f64::NAN)]), true),
        (row([("Two", 1.0), ("One", f64::NAN)]), false),
        (row([("Two", -0.0), ("One", 1.0)]), false),
    ] {
        let verdict = judge_write_from_rows(&batch, &[Some(found)], None).unwrap();
        assert_eq!(matches!(verdict, WriteVerdict::Done(_)), is_proof, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_first_attempt_is_no_conflict() {
    // The first insert arrives after the rows were read and before the second attempt.
    let s = store(RetryPolicy::new()).await;
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(open()[0].clone()));
    s.fault.inject(RequestKind::Apply, 1, InjectedFault::Delay(Duration::from_secs(1)));
    let batch = Batch::single("Rows", Operation::insert(row("r", "new"))).unwrap();
    let late = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        s.write(Operation::insert(row("r", "new"))).await;
    };
    let (result, ()) = tokio::join!(s.retry.apply(&batch), late);
    let error = result.unwrap_err();
    assert!(error.is_ambiguous(), "{error:?}");
    assert_eq!(error.seen(), Some(Seen::Equal));
}

/// "Too busy" says that the second attempt did nothing. The first one may still arrive.
#[tokio::test(start_paused = true)]
async fn a_later_refusal_does_not_settle_an_earlier_lost_answer() {
    let s = store(RetryPolicy::new().attempts(2)).await;
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(open()[0].clone()));
    s.fault.inject(RequestKind::Apply, 1, InjectedFault::Before(busy()));
    let batch = Batch::single("Rows", Operation::insert(row("r", "new"))).unwrap();
    let error = s.retry.apply(&batch).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Absent)), "{error}");
    assert_eq!(s.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn another_writers_version_is_not_taken_for_ours() {
    let s = store(RetryPolicy::new()).await;
    let operation = s.operation(Verb::Replace, true).await;
    s.write(Operation::insert_or_replace(row("r", "theirs"))).await;
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(open()[0].clone()));
    let error = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Other)));
}
