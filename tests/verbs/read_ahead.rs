//! Tests when a stream requests its pages, and that reading ahead changes neither items nor errors.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use entable::{
    ErrorKind,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use futures_util::TryStreamExt;
use time::macros::datetime;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

const EMPLOYEES: u32 = 7;

async fn staff(recorder: &Recorder) -> Query<Employee> {
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff: Table<Employee> = client.table();
    staff.create().await.unwrap();
    for id in 0..EMPLOYEES {
        staff.insert(&Employee { department: "Sales".into(), id }).await.unwrap();
    }
    recorder.clear();
    staff.query(Employee::primary().department("Sales")).page_size(2)
}

/// Lets the tasks of this thread run until none is ready.
async fn let_tasks_run() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Takes all items, and returns their ids and how many requests had been sent before each.
async fn ids_and_requests(recorder: &Recorder, query: &Query<Employee>) -> Vec<(u32, usize)> {
    let (mut found, mut seen) = (query.stream(), Vec::new());
    while let Some(one) = found.try_next().await.unwrap() {
        let_tasks_run().await;
        seen.push((one.id, recorder.count()));
    }
    seen
}

#[tokio::test]
async fn the_next_page_is_requested_while_the_items_of_the_last_are_used() {
    let recorder = Recorder::around(Memory::new());
    let query = staff(&recorder).await;
    let in_turn = [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)];
    assert_eq!(ids_and_requests(&recorder, &query).await, in_turn);
    recorder.clear();
    let ahead = [(0, 2), (1, 2), (2, 3), (3, 3), (4, 4), (5, 4), (6, 4)];
    assert_eq!(ids_and_requests(&recorder, &query.clone().read_ahead()).await, ahead);
}

/// Which page is the last depends on the items of the one before.
#[tokio::test]
async fn a_query_with_a_limit_reads_in_turn() {
    let recorder = Recorder::around(Memory::new());
    let query = staff(&recorder).await;
    for (take, requests) in [(1, 1), (2, 1), (3, 2), (4, 2), (7, 4)] {
        recorder.clear();
        let found = ids_and_requests(&recorder, &query.clone().take(take).read_ahead()).await;
        assert_eq!((found.len() as u64, recorder.count()), (take, requests), "{take}");
    }
    recorder.clear();
    assert!(query.clone().read_ahead().first().await.unwrap().is_some());
    assert_eq!(recorder.count(), 1);
}

#[tokio::test]
async fn a_stream_that_is_dropped_requests_at_most_one_page_in_vain() {
    let recorder = Recorder::around(Memory::new());
    let query = staff(&recorder).await.read_ahead();
    let mut found = query.stream();
    found.try_next().await.unwrap();
    drop(found);
    let_tasks_run().await;
    assert!(recorder.count() <= 2, "{}", recorder.count());
}

#[tokio::test]
async fn an_error_of_a_page_that_was_read_ahead_comes_after_the_items_before_it() {
    let faults = FaultInjector::around(Memory::new());
    let query = staff(&Recorder::around(faults.clone())).await.read_ahead();
    let lost = Error::new(ErrorKind::Backend, "connection lost");
    faults.inject(RequestKind::Scan, 1, InjectedFault::Before(lost));
    let (mut found, mut ids) = (query.stream(), Vec::new());
    let error = loop {
        let_tasks_run().await;
        match found.try_next().await {
            Ok(one) => ids.push(one.unwrap().id),
            Err(error) => break error,
        }
    };
    assert_eq!(ids, [0, 1]);
    assert!(error.is_backend(), "{error:?}");
    assert!(found.try_next().await.unwrap().is_none(), "the error is the last item");
}

/// Outside of a runtime, a page is read when its turn comes.
#[test]
fn a_stream_reads_all_pages_without_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let recorder = Recorder::around(Memory::new());
    let query = runtime.block_on(staff(&recorder)).read_ahead();
    let mut context = Context::from_waker(Waker::noop());
    let mut collect = pin!(query.stream().try_collect::<Vec<_>>());
    let found = loop {
        if let Poll::Ready(found) = collect.as_mut().poll(&mut context) {
            break found.unwrap();
        }
    };
    let ids: Vec<_> = found.iter().map(|one| one.id).collect();
    assert_eq!(ids, (0..EMPLOYEES).collect::<Vec<_>>());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
struct Login {
    user: String,
    at: time::OffsetDateTime,
}

#[tokio::test]
async fn tables_of_a_window_are_read_ahead_page_by_page() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    let from = datetime!(2026-11-01 0:00 UTC);
    let until = from + time::Duration::days(3);
    logins.create_between(from..until).await.unwrap();
    for hour in 0..72 {
        let at = from + time::Duration::hours(hour);
        logins.insert(&Login { user: "ada".into(), at }).await.unwrap();
    }
    let query = logins.query(Login::primary().at_between(from..until).user("ada")).page_size(5);
    let in_turn: Vec<_> = query.stream().try_collect().await.unwrap();
    let ahead: Vec<_> = query.read_ahead().stream().try_collect().await.unwrap();
    let logins = |found: Vec<Stored<Login>>| -> Vec<Login> {
        found.into_iter().map(Stored::into_inner).collect()
    };
    assert_eq!((in_turn.len(), logins(in_turn)), (72, logins(ahead)));
}
