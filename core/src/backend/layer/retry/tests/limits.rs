//! Tests which requests are retried, how often and after what delays.

use super::*;

#[tokio::test(start_paused = true)]
async fn refusals_are_not_made_again() {
    let s = store(RetryPolicy::new()).await;
    s.write(Operation::insert(row("r", "old"))).await;
    let batch = Batch::single("Rows", Operation::insert(row("r", "new"))).unwrap();
    assert!(s.retry.apply(&batch).await.unwrap_err().is_conflict());
    assert_eq!(s.fault.requests(), 1);
    s.fault.inject(
        RequestKind::Read,
        0,
        InjectedFault::Before(Error::service(ServiceCode::AuthenticationFailed, "no")),
    );
    let read = ReadRequest { table: "Rows", partition_key: "p", row_key: "r", select: None };
    assert!(s.retry.read(read).await.unwrap_err().is_denied());
    assert_eq!(s.fault.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn reads_scans_and_tables_are_made_again() {
    let s = store(RetryPolicy::new()).await;
    s.write(Operation::insert(row("r", "x"))).await;
    let reset = || Error::new(ErrorKind::Backend, "connection reset");
    s.fault.inject(RequestKind::Read, 0, InjectedFault::Before(reset()));
    let read = ReadRequest { table: "Rows", partition_key: "p", row_key: "r", select: None };
    assert!(s.retry.read(read).await.unwrap().is_some());
    s.fault.inject(RequestKind::Scan, 0, InjectedFault::After(busy()));
    let filter = crate::filter::Filter::Constant(true);
    let scan = ScanRequest { table: "Rows", filter: &filter, select: None, top: None, from: None };
    assert_eq!(s.retry.scan(scan).await.unwrap().rows.len(), 1);
    // A proxy may answer "too busy" although the service has carried the request out.
    for error in open().into_iter().chain([busy()]) {
        s.fault.inject(RequestKind::Tables, 0, InjectedFault::After(error.clone()));
        s.retry.tables(TableRequest::Create("More")).await.unwrap();
        s.fault.inject(RequestKind::Tables, 0, InjectedFault::After(error));
        s.retry.tables(TableRequest::Delete("More")).await.unwrap();
    }
    assert!(s.retry.tables(TableRequest::Create("Rows")).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn waits_are_jittered_bounded_and_as_long_as_asked() {
    let policy = RetryPolicy::new()
        .delays(Duration::from_millis(100), Duration::from_millis(400))
        .attempts(5);
    let s = store(policy).await;
    let read = ReadRequest { table: "Rows", partition_key: "p", row_key: "r", select: None };
    let mut spent = Vec::new();
    for _ in 0..20 {
        for _ in 0..4 {
            s.fault.inject(RequestKind::Read, 0, InjectedFault::Before(busy()));
        }
        s.fault.clear();
        for nth in 0..4 {
            s.fault.inject(RequestKind::Read, nth, InjectedFault::Before(busy()));
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
    s.fault.inject(
        RequestKind::Read,
        0,
        InjectedFault::Before(busy().with_retry_after(Duration::from_secs(7))),
    );
    let began = tokio::time::Instant::now();
    s.retry.read(read).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn attempts_time_and_budget_come_to_an_end() {
    let read = ReadRequest { table: "Rows", partition_key: "p", row_key: "r", select: None };
    let fails = |s: &Store, times: usize| {
        for nth in 0..times {
            s.fault.inject(RequestKind::Read, nth, InjectedFault::Before(busy()));
        }
    };
    let s = store(RetryPolicy::new().attempts(3)).await;
    fails(&s, 10);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 3);

    let s = store(RetryPolicy::new().give_up_after(Duration::from_secs(5))).await;
    s.fault.inject(
        RequestKind::Read,
        0,
        InjectedFault::Before(busy().with_retry_after(Duration::from_secs(6))),
    );
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());

    let s = store(RetryPolicy::new().budget(2)).await;
    fails(&s, 10);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 3);
    assert!(s.retry.read(read).await.unwrap_err().is_throttled());
    assert_eq!(s.fault.requests(), 4);

    // Whoever makes no further attempt takes nothing from the budget of others.
    let s = store(RetryPolicy::new().attempts(2).budget(2)).await;
    fails(&s, 10);
    for requests in [2, 4, 5] {
        assert!(s.retry.read(read).await.unwrap_err().is_throttled());
        assert_eq!(s.fault.requests(), requests);
    }

    let s = store(RetryPolicy::never()).await;
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(open()[0].clone()));
    let operation = s.operation(Verb::Replace, true).await;
    let error = s.retry.apply(&Batch::single("Rows", operation).unwrap()).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, Some(Seen::Unchanged)));
}

#[tokio::test(start_paused = true)]
async fn rows_that_cannot_be_read_leave_it_open() {
    let s = store(RetryPolicy::new().attempts(2)).await;
    s.fault.inject(RequestKind::Apply, 0, InjectedFault::After(open()[0].clone()));
    for nth in 0..4 {
        s.fault.inject(
            RequestKind::Read,
            nth,
            InjectedFault::Before(Error::new(ErrorKind::Backend, "down")),
        );
    }
    let batch = Batch::single("Rows", Operation::insert_or_replace(row("r", "x"))).unwrap();
    let error = s.retry.apply(&batch).await.unwrap_err();
    assert_eq!((error.is_ambiguous(), error.seen()), (true, None));
}
