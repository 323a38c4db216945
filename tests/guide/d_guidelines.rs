//! D: guidelines.

use std::{sync::Arc, time::Duration};

use entable::{
    ServiceCode,
    backend::{
        Memory,
        layer::{InjectedFault, Request, RequestKind, RetryPolicy},
    },
    prelude::*,
};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{
    latency::{delay, latencies_since},
    model::{Employee, Worker, employee, review, worker},
    store::{Store, TestResult, on_both, on_local},
};

#[tokio::test]
async fn d03_a_point_is_one_typed_read() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(212)).await?;
        store.requests();
        let point: Point<Worker> = Worker::primary().department("Sales").id(212);
        let found: Option<Stored<Worker>> = staff.get(point).await?;
        assert_eq!(found.unwrap().id, 212);
        let requests = store.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].to_string(), "read Staff (Sales, empid_000212)");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn d04_a_copy_under_another_key_is_an_attribute() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&employee(223, "Jones")).await?;
        store.requests();
        let by_email = Employee::by_email().department("Sales").email("jones223@contoso.com");
        let found = staff.get(by_email).await?.unwrap();
        assert_eq!((*found).clone(), employee(223, "Jones"));
        let requests = store.requests();
        assert_eq!((requests.len(), requests[0].is_read()), (1, true), "as cheap as by its id");
        Ok(())
    })
    .await
}

#[test]
fn d06_keys_are_compounds_of_parts() -> Result<(), Error> {
    assert_eq!(review(123, 2012).to_row()?.row_key(), "empid_000123_2012");
    Ok(())
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Worker)]
struct Name {
    last_name: String,
}

#[tokio::test]
async fn d07_a_projection_fetches_its_fields_alone() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(1)).await?;
        store.requests();
        let names = staff.query(Worker::primary().department("Sales")).select::<Name>();
        let names = names.collect().await?;
        assert_eq!(*names[0], Name { last_name: "Jones".into() });
        assert!(names[0].row().get("Email")?.is_none(), "it was not sent");
        let Some(Request::Scan { select: Some(select), .. }) = store.requests().pop() else {
            panic!("a query with a selection")
        };
        assert!(select.contains(&"LastName".to_owned()) && !select.contains(&"Age".to_owned()));
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}_{id:06}", row_key = "entry_{number:04}")]
struct Spread {
    department: String,
    id: u32,
    number: u32,
}

#[tokio::test]
async fn d08_a_partition_key_of_several_parts_spreads_the_load() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Spread>().await;
        let entry = |id, number| Spread { department: "Sales".into(), id, number };
        let rows = (0..10).flat_map(|id| (0..3).map(move |number| entry(id, number)));
        let report = staff.bulk().insert_all(rows).await?;
        assert_eq!((report.done, report.requests), (30, 10), "ten partitions");
        let of_seven = staff.query(Spread::primary().department("Sales").id(7));
        let found = of_seven.collect().await?;
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].partition_key(), "Sales_000007");
        assert_eq!((&*found[0].department, found[0].id), ("Sales", 7));
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn d09_the_requests_in_flight_are_bounded() -> TestResult {
    on_local(async |store| {
        let staff = store.table::<Worker>().await;
        let paths = || (0..8).map(|d| Worker::primary().department(format!("D{d}")));
        for (at_a_time, expected) in [(1, 8), (2, 4), (3, 3), (4, 2), (8, 1)] {
            delay(&store, RequestKind::Scan, 8);
            let begun = Instant::now();
            let query = staff.query_many(paths()).concurrency(at_a_time);
            assert!(query.collect().await?.is_empty());
            assert_eq!(latencies_since(begun), expected, "{at_a_time} collected at a time");
            delay(&store, RequestKind::Scan, 8);
            let begun = Instant::now();
            assert_eq!(query.stream().count().await, 0);
            assert_eq!(latencies_since(begun), expected, "{at_a_time} streamed at a time");
        }
        Ok(())
    })
    .await?;
    // In memory, where a write takes no time but its latency.
    let store = Store::on(Arc::new(Memory::new()), None);
    let staff = store.table::<Worker>().await;
    for (at_a_time, expected) in [(1, 8), (2, 4), (3, 3), (4, 2), (8, 1)] {
        let rows = (0..8).map(|d| Worker { department: format!("D{d}"), ..worker(at_a_time) });
        delay(&store, RequestKind::Apply, 8);
        let begun = Instant::now();
        let report = staff.bulk().concurrency(at_a_time as usize).insert_all(rows).await?;
        assert_eq!((report.done, report.requests), (8, 8));
        assert_eq!(latencies_since(begun), expected, "{at_a_time} written at a time");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn d11_a_throttled_request_is_made_again_later() -> TestResult {
    on_local(async |store| {
        store.table::<Employee>().await;
        let delay = Duration::from_millis(20);
        let policy = RetryPolicy::new().delays(delay, delay * 4);
        let patient = Client::builder().backend(store.fault.clone()).retry(policy).build()?;
        let staff = patient.table::<Employee>();
        let busy = |wait: u64| {
            InjectedFault::Before(
                Error::service(ServiceCode::ServerBusy, "busy")
                    .with_retry_after(Duration::from_millis(wait)),
            )
        };
        // Twice each: the list's read, and the transaction.
        (0..2).for_each(|nth| store.fault.inject(RequestKind::Read, nth, busy(0)));
        (0..2).for_each(|nth| store.fault.inject(RequestKind::Apply, nth, busy(60)));
        let begun = Instant::now();
        staff.insert(&employee(1, "Jones")).await?;
        assert!(begun.elapsed() >= Duration::from_millis(120), "as long as the service asks");
        assert_eq!(store.fault.pending(), 0);
        let keys = store.row_keys("Staff", "Sales").await;
        assert_eq!(keys, ["email_jones1@contoso.com", "empid_000001", "lastname_Jones"]);

        // Without a policy the caller sees it, and can slow down.
        store.fault.inject(RequestKind::Read, 0, busy(60));
        let plain = Client::builder().backend(store.fault.clone()).build()?;
        let point = Employee::primary().department("Sales").id(1);
        let error = plain.table::<Employee>().get(point).await.unwrap_err();
        assert!(error.is_throttled() && error.retry_after() == Some(Duration::from_millis(60)));
        Ok(())
    })
    .await
}
