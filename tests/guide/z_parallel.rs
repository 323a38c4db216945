//! Z: asynchronous and parallel operations.

use entable::{backend::layer::RequestKind, prelude::*};
use futures_util::{StreamExt, TryStreamExt, future, stream};
use tokio::time::Instant;

use crate::{
    latency::{delay, latencies_since},
    model::{Worker, worker},
    store::{Store, TestResult, on_both, on_local},
};

const DEPARTMENTS: u32 = 8;

fn of(department: u32, id: u32) -> Worker {
    Worker { department: format!("D{department}"), ..worker(id) }
}

/// Eight departments of five.
async fn departments(store: &Store) -> Result<Table<Worker>, Error> {
    let staff = store.table::<Worker>().await;
    let all = (0..DEPARTMENTS).flat_map(|d| (0..5).map(move |id| of(d, id)));
    staff.bulk().insert_all(all).await?.into_result()?;
    store.recorder.clear();
    Ok(staff)
}

fn path(department: u32) -> Partition<Worker> {
    Worker::primary().department(format!("D{department}")).into()
}

#[tokio::test(start_paused = true)]
async fn z01_eight_departments_take_the_time_of_one() -> TestResult {
    on_local(async |store| {
        let staff = departments(&store).await?;
        delay(&store, RequestKind::Scan, DEPARTMENTS as usize);
        let begun = Instant::now();
        let mut one_by_one = Vec::new();
        for department in 0..DEPARTMENTS {
            one_by_one.extend(staff.query(path(department)).collect().await?);
        }
        assert_eq!(latencies_since(begun), u128::from(DEPARTMENTS));

        let all = staff.query_many((0..DEPARTMENTS).map(path)).concurrency(DEPARTMENTS as usize);
        delay(&store, RequestKind::Scan, DEPARTMENTS as usize);
        let begun = Instant::now();
        let found = all.collect().await?;
        assert_eq!(latencies_since(begun), 1, "collected");

        delay(&store, RequestKind::Scan, DEPARTMENTS as usize);
        let begun = Instant::now();
        let streamed: Vec<_> = all.stream().try_collect().await?;
        assert_eq!(latencies_since(begun), 1, "streamed");

        let sorted = |found: Vec<Stored<Worker>>| {
            let mut rows: Vec<Worker> = found.into_iter().map(Stored::into_inner).collect();
            rows.sort_by_key(|worker| (worker.department.clone(), worker.id));
            rows
        };
        let one_by_one = sorted(one_by_one);
        assert_eq!(sorted(found), one_by_one);
        assert_eq!(sorted(streamed), one_by_one);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn z02_workers_share_the_partitions_between_them() -> TestResult {
    on_both(async |store| {
        let staff = departments(&store).await?;
        // Each of three workers has the partitions whose number leaves its own, and no other.
        let mine = |worker: u32| (0..DEPARTMENTS).filter(move |d| d % 3 == worker).map(path);
        let done = future::try_join_all((0..3).map(|worker| {
            let staff = staff.clone();
            async move { staff.query_many(mine(worker)).collect().await }
        }));
        let mut seen: Vec<(String, u32)> = Vec::new();
        for share in done.await? {
            seen.extend(share.iter().map(|worker| (worker.department.clone(), worker.id)));
        }
        seen.sort();
        let all = (0..DEPARTMENTS).flat_map(|d| (0..5).map(move |id| (format!("D{d}"), id)));
        assert_eq!(seen, all.collect::<Vec<_>>(), "each row once");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn z04_many_entities_of_a_department_page_by_page() -> TestResult {
    on_both(async |store| {
        let staff = departments(&store).await?;
        let query = staff.query(path(3)).page_size(2);
        let (mut seen, mut token) = (Vec::new(), None);
        loop {
            let page = query.page(token).await?;
            seen.extend(page.items.iter().map(|worker| worker.id));
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert!(store.count() >= 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn z05_a_query_for_each_department_on_tasks_of_their_own() -> TestResult {
    on_both(async |store| {
        let staff = departments(&store).await?;
        let counts: Vec<usize> = stream::iter(0..DEPARTMENTS)
            .map(|department| {
                let staff = staff.clone();
                let task =
                    tokio::spawn(async move { staff.query(path(department)).collect().await });
                async move { Ok::<_, Box<dyn std::error::Error>>(task.await??.len()) }
            })
            .buffered(4)
            .try_collect()
            .await?;
        assert_eq!(counts, [5; DEPARTMENTS as usize]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn z06_asynchronous_enumeration_is_a_stream() -> TestResult {
    on_both(async |store| {
        let staff = departments(&store).await?;
        let mut stream = staff.query(path(1)).page_size(2).stream();
        let mut seen = Vec::new();
        while let Some(worker) = stream.next().await {
            seen.push(worker?.id);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn z07_a_write_says_status_and_version() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let first = staff.insert_or_replace(&worker(1)).await?;
        assert_eq!(Stored::status(&first), 204);
        let second = staff.insert_or_replace(&Worker { age: Some(50), ..worker(1) }).await?;
        assert_eq!(Stored::status(&second), 204);
        assert_ne!(Stored::etag(&first), Stored::etag(&second));
        let read = staff.get(Worker::primary().department("Sales").id(1)).await?.unwrap();
        assert_eq!(Stored::etag(&read), Stored::etag(&second));
        assert_eq!(format!("HTTP Status: {}", Stored::status(&second)), "HTTP Status: 204");
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn z08_many_calls_are_in_flight_on_one_client() -> TestResult {
    fn is_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    on_local(async |store| {
        is_shared(&store.client);
        let staff = store.table::<Worker>().await;
        is_shared(&staff);
        staff.bulk().insert_all((0..4).map(worker)).await?.into_result()?;
        // A lock around a verb, or one lock around all of them, would make the calls wait for each other.
        delay(&store, RequestKind::Any, 16);
        let point = |id| Worker::primary().department("Sales").id(id);
        let sales = staff.query(Worker::primary().department("Sales"));
        let begun = Instant::now();
        let gets = future::try_join_all((0..4).map(|id| staff.get(point(id))));
        let pages = future::try_join_all((0..4).map(|_| sales.page(None)));
        let collects = future::try_join_all((0..4).map(|_| sales.collect()));
        let elsewhere: Vec<Worker> = (0..4).map(|id| of(1, id)).collect();
        let inserts = future::try_join_all(elsewhere.iter().map(|worker| staff.insert(worker)));
        let (gets, pages, collects, inserts) =
            future::try_join4(gets, pages, collects, inserts).await?;
        assert_eq!(latencies_since(begun), 1);
        assert_eq!(store.fault.pending(), 0, "sixteen requests");
        assert!(gets.iter().all(Option::is_some) && inserts.len() == 4);
        assert!(pages.iter().all(|page| page.items.len() == 4));
        assert!(collects.iter().all(|found| found.len() == 4));

        let on_tasks = (4..20).map(|id| {
            let staff = staff.clone();
            tokio::spawn(async move { staff.insert(&worker(id)).await })
        });
        delay(&store, RequestKind::Apply, 16);
        let begun = Instant::now();
        for task in on_tasks.collect::<Vec<_>>() {
            task.await??;
        }
        assert_eq!(latencies_since(begun), 1, "on tasks of their own");
        assert_eq!(staff.query(Worker::primary().department("Sales")).collect().await?.len(), 20);
        Ok(())
    })
    .await
}
