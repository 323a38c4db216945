//! Every failure, before and after the write, on every verb: no write is lost or doubled, and no
//! conflict is made up.

use std::time::Duration;

use super::*;
use crate::{
    backend::{
        Memory,
        layer::{Fault, On, Recorder, Trouble},
    },
    batch::{Condition, Operation, Verb},
    edm::ValueRef,
    row::ETag,
};

const VERBS: [Verb; 6] = [
    Verb::Insert,
    Verb::Replace,
    Verb::Merge,
    Verb::InsertOrReplace,
    Verb::InsertOrMerge,
    Verb::Delete,
];

/// A store behind troubles, and a way around them.
struct Store {
    retry: Retry,
    fault: Fault,
    /// Sees what passes the troubles.
    plain: Recorder,
}

async fn store(policy: RetryPolicy) -> Store {
    let plain = Recorder::around(Memory::new());
    plain.tables(TableRequest::Create("Rows")).await.unwrap();
    let fault = Fault::around(plain.clone());
    Store { retry: Retry::around(fault.clone(), policy), fault, plain }
}

fn row(key: &str, text: &str) -> Row {
    Row::build("p", key).with("Text", ValueRef::String(text)).unwrap().finish().unwrap()
}

impl Store {
    async fn write(&self, operation: Operation) -> ETag {
        let batch = Batch::single("Rows", operation).unwrap();
        self.plain.apply(&batch).await.unwrap().remove(0).etag.unwrap()
    }

    async fn text(&self, key: &str) -> Option<String> {
        let request = Read { table: "Rows", partition_key: "p", row_key: key, select: None };
        let row = self.plain.read(request).await.unwrap()?;
        match row.get("Text").unwrap() {
            Some(ValueRef::String(text)) => Some(text.to_owned()),
            _ => None,
        }
    }

    async fn version(&self, key: &str) -> Option<ETag> {
        let request = Read { table: "Rows", partition_key: "p", row_key: key, select: None };
        self.plain.read(request).await.unwrap()?.etag()
    }

    /// The operation of that verb on row `r`, which is there for all but an insert.
    async fn operation(&self, verb: Verb, guarded: bool) -> Operation {
        let condition = if verb == Verb::Insert {
            Condition::Any
        } else {
            let etag = self.write(Operation::insert(row("r", "old"))).await;
            if guarded { Condition::Match(etag) } else { Condition::Any }
        };
        let new = row("r", "new");
        match verb {
            Verb::Insert => Operation::insert(new),
            Verb::Replace => Operation::replace(new, condition),
            Verb::Merge => Operation::merge(new, condition),
            Verb::InsertOrReplace => Operation::insert_or_replace(new),
            Verb::InsertOrMerge => Operation::insert_or_merge(new),
            Verb::Delete => Operation::delete("p", "r", condition).unwrap(),
        }
    }

    /// How many writes reached the store.
    fn writes(&self) -> usize {
        use crate::backend::layer::Request;
        self.plain.requests().iter().filter(|r| matches!(r, Request::Apply { .. })).count()
    }
}

fn busy() -> Error {
    Error::service(ServiceCode::ServerBusy, "busy")
}

/// A timeout, a reset, a bare 500: the outcome is open.
fn open() -> [Error; 3] {
    [
        Error::new(ErrorKind::Ambiguous, "no answer within 30 s"),
        Error::new(ErrorKind::Ambiguous, "connection reset")
            .with_code(ServiceCode::Other("Http502".into(), 502)),
        Error::service(ServiceCode::InternalError, "internal error"),
    ]
}

#[tokio::test(start_paused = true)]
async fn busy_before_the_write_is_waited_out_on_every_verb() {
    for verb in VERBS {
        for guarded in [false, true] {
            let s = store(RetryPolicy::new()).await;
            let operation = s.operation(verb, guarded).await;
            s.plain.clear();
            s.fault.inject(On::Apply, 0, Trouble::Before(busy()));
            s.fault.inject(On::Apply, 1, Trouble::Before(busy()));
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
                s.fault.inject(On::Apply, 0, Trouble::After(error));
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
            s.fault.inject(On::Apply, 0, Trouble::Before(error));
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
            s.fault.inject(On::Apply, 0, Trouble::Before(error));
            let batch = Batch::single("Rows", operation).unwrap();
            let error = s.retry.apply(&batch).await.unwrap_err();
            assert!(error.is_ambiguous(), "{verb:?}");
            assert_eq!((error.seen(), s.writes()), (Some(Seen::Other), 0));
            assert_eq!(s.text("r").await.as_deref(), Some("old"));
        }
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
            s.fault.inject(On::Apply, 0, Trouble::After(error));
            let written = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap();
            assert_eq!(written[0].etag, s.version("r").await, "{verb:?}");
            assert_eq!(s.writes(), 1);
        }
    }
}

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
        s.fault.inject(On::Apply, 0, Trouble::Before(error.clone()));
        s.retry.apply(&batch).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!((s.writes(), s.text("2").await.as_deref()), (1, Some("new")));

        let s = store(RetryPolicy::new()).await;
        let batch = transaction(&s).await;
        s.fault.inject(On::Apply, 0, Trouble::After(error.clone()));
        let failed = s.retry.apply(&batch).await.unwrap_err();
        assert!(failed.is_ambiguous(), "{failed:?}");
        assert_eq!((failed.seen(), s.writes()), (Some(Seen::Equal), 1));

        let s = store(RetryPolicy::new().operation_ids(true)).await;
        let batch = transaction(&s).await;
        s.fault.inject(On::Apply, 0, Trouble::After(error));
        let written = s.retry.apply(&batch).await.unwrap();
        assert_eq!(s.writes(), 1);
        assert_eq!(written[0].etag, s.version("1").await);
        assert_eq!(written[1].etag, s.version("2").await);
        assert_eq!(written[2].etag, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_of_upserts_is_proved_by_its_content() {
    let s = store(RetryPolicy::new()).await;
    let mut batch = Batch::new("Rows");
    batch.push(Operation::insert_or_replace(row("1", "a"))).unwrap();
    batch.push(Operation::insert_or_merge(row("2", "b"))).unwrap();
    s.fault.inject(On::Apply, 0, Trouble::After(open()[0].clone()));
    let written = s.retry.apply(&batch).await.unwrap();
    assert_eq!(written[1].etag, s.version("2").await);
}

#[tokio::test(start_paused = true)]
async fn a_late_first_attempt_is_no_conflict() {
    // The first insert arrives after the rows were read and before the second attempt.
    let s = store(RetryPolicy::new()).await;
    s.fault.inject(On::Apply, 0, Trouble::Before(open()[0].clone()));
    s.fault.inject(On::Apply, 1, Trouble::Delay(Duration::from_secs(1)));
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

#[tokio::test(start_paused = true)]
async fn another_writers_version_is_not_taken_for_ours() {
    let s = store(RetryPolicy::new()).await;
    let operation = s.operation(Verb::Replace, true).await;
    s.write(Operation::insert_or_replace(row("r", "theirs"))).await;
    s.fault.inject(On::Apply, 0, Trouble::Before(open()[0].clone()));
    let error = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Other)));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_not_made_again() {
    let s = store(RetryPolicy::new()).await;
    s.write(Operation::insert(row("r", "old"))).await;
    let batch = Batch::single("Rows", Operation::insert(row("r", "new"))).unwrap();
    assert!(s.retry.apply(&batch).await.unwrap_err().is_conflict());
    assert_eq!(s.fault.requests(), 1);
    s.fault.inject(
        On::Read,
        0,
        Trouble::Before(Error::service(ServiceCode::AuthenticationFailed, "no")),
    );
    let read = Read { table: "Rows", partition_key: "p", row_key: "r", select: None };
    assert!(s.retry.read(read).await.unwrap_err().is_denied());
    assert_eq!(s.fault.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn reads_scans_and_tables_are_made_again() {
    let s = store(RetryPolicy::new()).await;
    s.write(Operation::insert(row("r", "x"))).await;
    let reset = || Error::new(ErrorKind::Backend, "connection reset");
    s.fault.inject(On::Read, 0, Trouble::Before(reset()));
    let read = Read { table: "Rows", partition_key: "p", row_key: "r", select: None };
    assert!(s.retry.read(read).await.unwrap().is_some());
    s.fault.inject(On::Scan, 0, Trouble::After(busy()));
    let filter = crate::filter::Filter::Constant(true);
    let scan = Scan { table: "Rows", filter: &filter, select: None, top: None, from: None };
    assert_eq!(s.retry.scan(scan).await.unwrap().rows.len(), 1);
    s.fault.inject(On::Tables, 0, Trouble::After(open()[0].clone()));
    s.retry.tables(TableRequest::Create("More")).await.unwrap();
    s.fault.inject(On::Tables, 0, Trouble::After(open()[1].clone()));
    s.retry.tables(TableRequest::Delete("More")).await.unwrap();
    assert!(s.retry.tables(TableRequest::Create("Rows")).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn waits_are_jittered_bounded_and_as_long_as_asked() {
    let policy = RetryPolicy::new()
        .delays(Duration::from_millis(100), Duration::from_millis(400))
        .attempts(5);
    let s = store(policy).await;
    let read = Read { table: "Rows", partition_key: "p", row_key: "r", select: None };
    let mut spent = Vec::new();
    for _ in 0..20 {
        for _ in 0..4 {
            s.fault.inject(On::Read, 0, Trouble::Before(busy()));
        }
        s.fault.clear();
        for nth in 0..4 {
            s.fault.inject(On::Read, nth, Trouble::Before(busy()));
        }
        let began = tokio::time::Instant::now();
        s.retry.read(read).await.unwrap();
        spent.push(began.elapsed());
    }
    assert!(
        spent.iter().all(|t| *t <= Duration::from_millis(100 + 200 + 400 + 400 + 10)),
        "{spent:?}"
    );
    spent.sort_unstable();
    spent.dedup();
    assert!(spent.len() > 10, "{spent:?}");
    s.fault.inject(On::Read, 0, Trouble::Before(busy().with_retry_after(Duration::from_secs(7))));
    let began = tokio::time::Instant::now();
    s.retry.read(read).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn attempts_time_and_budget_come_to_an_end() {
    let read = Read { table: "Rows", partition_key: "p", row_key: "r", select: None };
    let fails = |s: &Store, times: usize| {
        for nth in 0..times {
            s.fault.inject(On::Read, nth, Trouble::Before(busy()));
        }
    };
    let s = store(RetryPolicy::new().attempts(3)).await;
    fails(&s, 10);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 3);

    let s = store(RetryPolicy::new().give_up_after(Duration::from_secs(5))).await;
    s.fault.inject(On::Read, 0, Trouble::Before(busy().with_retry_after(Duration::from_secs(6))));
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());

    let s = store(RetryPolicy::new().budget(2)).await;
    fails(&s, 10);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 3);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 4);

    let s = store(RetryPolicy::never()).await;
    s.fault.inject(On::Apply, 0, Trouble::Before(open()[0].clone()));
    let operation = s.operation(Verb::Replace, true).await;
    let error = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Unchanged)));
}

#[tokio::test(start_paused = true)]
async fn rows_that_cannot_be_read_leave_it_open() {
    let s = store(RetryPolicy::new().attempts(2)).await;
    s.fault.inject(On::Apply, 0, Trouble::After(open()[0].clone()));
    for nth in 0..4 {
        s.fault.inject(On::Read, nth, Trouble::Before(Error::new(ErrorKind::Backend, "down")));
    }
    let batch = Batch::single("Rows", Operation::insert_or_replace(row("r", "x"))).unwrap();
    let error = s.retry.apply(&batch).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, None));
}
