//! Retries of single operations: every verb, and where a verb takes an ETag, with and without one.

use super::*;
use crate::backend::NotSent;

#[tokio::test(start_paused = true)]
async fn busy_before_the_write_is_waited_out_on_every_verb() {
    for verb in VERBS {
        for guarded in [false, true] {
            let s = store(RetryPolicy::new()).await;
            let operation = s.operation(verb, guarded).await;
            s.plain.clear();
            s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(busy()));
            s.fault.inject(RequestKind::Apply, 1, InjectedFault::Before(busy()));
            s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap();
            assert_eq!(s.writes(), 1, "{verb:?}");
            let expected = (verb != Verb::Delete).then(|| "new".to_owned());
            assert_eq!(s.text("r").await, expected, "{verb:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_twice_after_a_lost_answer() {
    for verb in VERBS {
        for guarded in [false, true] {
            for error in open().into_iter().chain([busy()]) {
                let s = store(RetryPolicy::new()).await;
                let operation = s.operation(verb, guarded).await;
                s.plain.clear();
                s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
                let result = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await;
                assert_eq!(s.writes(), 1, "{verb:?}");
                let won = verb == Verb::Insert
                    || guarded && matches!(verb, Verb::Replace | Verb::Merge | Verb::Delete);
                match result {
                    Ok(written) => {
                        assert!(!won, "{verb:?} claims what cannot be known");
                        assert_eq!(written[0].etag, s.version("r").await);
                    }
                    Err(error) => {
                        assert!(won && error.is_ambiguous(), "{verb:?}: {error:?}");
                        let absent = verb == Verb::Delete;
                        let seen = if absent { Seen::Absent } else { Seen::Equal };
                        assert_eq!(error.seen(), Some(seen), "{verb:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guarded_write_that_did_not_happen_is_made_again() {
    for verb in [Verb::Insert, Verb::Replace, Verb::Merge, Verb::Delete] {
        for error in open() {
            let s = store(RetryPolicy::new()).await;
            let operation = s.operation(verb, true).await;
            s.plain.clear();
            s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(error));
            s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap();
            assert_eq!(s.writes(), 1, "{verb:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unguarded_write_is_never_made_again_blindly() {
    for verb in
        [Verb::Replace, Verb::Merge, Verb::InsertOrReplace, Verb::InsertOrMerge, Verb::Delete]
    {
        for error in open() {
            let s = store(RetryPolicy::new()).await;
            let operation = s.operation(verb, false).await;
            s.plain.clear();
            s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(error));
            let batch = Batch::single("Rows", operation).unwrap();
            let error = s.retry.apply(&batch).await.unwrap_err();
            assert!(error.is_ambiguous(), "{verb:?}");
            assert_eq!((error.seen(), s.writes()), (Some(Seen::Other), 0));
            assert_eq!(s.text("r").await.as_deref(), Some("old"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_never_sent_is_made_again_as_it_is() {
    for verb in VERBS {
        let s = store(RetryPolicy::new()).await;
        let operation = s.operation(verb, false).await;
        s.plain.clear();
        let unsent = Error::new(ErrorKind::Backend, "cannot be reached");
        let unsent = unsent.with_source(NotSent::new("connection refused"));
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(unsent));
        s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap();
        assert_eq!((s.writes(), s.plain.count()), (1, 1), "{verb:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_id_proves_a_write() {
    for verb in
        [Verb::Insert, Verb::Replace, Verb::Merge, Verb::InsertOrReplace, Verb::InsertOrMerge]
    {
        for error in open().into_iter().chain([busy()]) {
            let s = store(RetryPolicy::new().operation_ids(true)).await;
            let operation = s.operation(verb, true).await;
            s.plain.clear();
            s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(error));
            let written = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap();
            // Another writer may have merged other properties since, which the write does not name.
            let expected = s.version("r").await.filter(|_| verb != Verb::Merge);
            assert_eq!(written[0].etag, expected, "{verb:?}");
            assert_eq!(s.writes(), 1);
        }
    }
}

#[test]
fn no_operation_id_begins_as_an_encrypted_value() {
    let row = Row::build("p", "r").finish().unwrap();
    let batch = Batch::single("Rows", Operation::insert(row)).unwrap();
    for _ in 0..64 {
        let (_, [first, ..]) =
            crate::backend::layer::retry::operation_id::batch_with_operation_id(&batch).unwrap();
        assert!(first < 0x80, "{first}");
    }
}

/// A writer without operation ids leaves the id in the row that it merges into.
#[tokio::test(start_paused = true)]
async fn an_operation_id_does_not_prove_that_nobody_wrote_since() {
    for verb in
        [Verb::Insert, Verb::Replace, Verb::Merge, Verb::InsertOrReplace, Verb::InsertOrMerge]
    {
        let s = store(RetryPolicy::new().operation_ids(true)).await;
        let operation = s.operation(verb, true).await;
        s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(open()[0].clone()));
        let batch = Batch::single("Rows", operation).unwrap();
        let other = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            s.write(Operation::merge(row("r", "theirs"), Condition::Any)).await;
        };
        let (written, ()) = tokio::join!(s.retry.apply(&batch), other);
        assert_eq!(written.unwrap()[0].etag, None, "{verb:?}");
        assert_eq!(s.text("r").await.as_deref(), Some("theirs"));
    }
}

/// The id is one property more than the caller writes, and a merge does not see how many the row has.
#[tokio::test(start_paused = true)]
async fn a_full_row_is_merged_without_an_operation_id() {
    let s = store(RetryPolicy::new().operation_ids(true)).await;
    let full = |value: i32| {
        let mut row = Row::build("p", "full");
        for number in 0..252 {
            row.put(&format!("P{number}"), ValueRef::Int32(value));
        }
        row.finish().unwrap()
    };
    let insert = Batch::single("Rows", Operation::insert(full(1))).unwrap();
    let written = s.retry.apply(&insert).await.unwrap();
    let etag = written[0].etag.clone().unwrap();
    let merge = |condition| {
        let mut one = Row::build("p", "full");
        one.put("P7", ValueRef::Int32(2));
        Batch::single("Rows", Operation::merge(one.finish().unwrap(), condition)).unwrap()
    };
    // Refused with the id, then sent without it. Nothing proves that one where its answer is lost.
    let [lost, ..] = open();
    s.fault.inject(RequestKind::Apply, 1, InjectedFault::After(lost));
    let error = s.retry.apply(&merge(Condition::Match(etag))).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Equal)), "{error}");
    s.retry.apply(&merge(Condition::Any)).await.unwrap();
    let read = ReadRequest { table: "Rows", partition_key: "p", row_key: "full", select: None };
    let row = s.retry.read(read).await.unwrap().unwrap();
    assert_eq!(row.property_count().unwrap(), 252);
    assert_eq!(row.get("P7").unwrap(), Some(ValueRef::Int32(2)));

    // A row that is too large without the id stays refused.
    let mut more = Row::build("p", "full");
    more.put("New", ValueRef::Int32(1));
    let merge = Operation::merge(more.finish().unwrap(), Condition::Any);
    let error = s.retry.apply(&Batch::single("Rows", merge).unwrap()).await.unwrap_err();
    assert_eq!(error.service_code(), Some(&ServiceCode::TooManyProperties), "{error}");
}
