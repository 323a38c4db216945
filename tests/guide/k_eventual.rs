//! K: eventually consistent transactions: the employee who is archived.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use entable::{
    Context, ServiceCode, Worker,
    backend::layer::{InjectedFault, RequestKind, RetryPolicy},
    prelude::*,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::store::{Store, TestResult, on_both, on_local};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Current", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "ArchiveEmployee", version = 1)]
struct ArchiveEmployee {
    department: String,
    id: u32,
}

fn point() -> Point<Employee> {
    Employee::primary().department("Sales").id(456)
}

async fn tables(client: &Client) -> Result<(Table<Employee>, Table<Employee>), Error> {
    let (current, archive) = (client.table::<Employee>(), client.table_named("Archive"));
    current.create_if_not_exists().await?;
    archive.create_if_not_exists().await?;
    for table in [&current, &archive] {
        table.delete_at(point()).await?;
    }
    Ok((current, archive))
}

/// An employee, and the message that asks for archiving it.
async fn asked(store: &Store) -> Result<(Table<Employee>, Table<Employee>), Error> {
    let (current, archive) = tables(&store.client).await?;
    let one = Employee { department: "Sales".into(), id: 456, last_name: "Jones".into() };
    let mut egt = current.transaction();
    let ask = ArchiveEmployee { department: "Sales".into(), id: 456 };
    egt.insert(&one)?.emit(&ask)?;
    egt.commit().await?;
    store.recorder.clear();
    Ok((current, archive))
}

/// Where the employee is: in `Current`, in `Archive`.
async fn places(store: &Store) -> Result<(bool, bool), Error> {
    let current = store.other.table::<Employee>();
    let archive = store.other.table_named::<Employee>("Archive");
    Ok((current.get(point()).await?.is_some(), archive.get(point()).await?.is_some()))
}

/// Steps 4 and 5 of the guide: insert or replace there, delete if it is here.
async fn archive(cx: Context, message: ArchiveEmployee) -> Result<(), BoxError> {
    let current = cx.client().table::<Employee>();
    let archive = cx.client().table_named::<Employee>("Archive");
    let point = Employee::primary().department(&*message.department).id(message.id);
    if let Some(one) = current.get(point.clone()).await? {
        archive.insert_or_replace(&one).await?;
        current.delete_at(point).await?;
    }
    Ok(())
}

fn worker(client: &Client) -> Worker {
    client.worker().on(archive)
}

fn lost() -> Error {
    Error::new(ErrorKind::Backend, "connection lost")
}

#[tokio::test]
async fn k03_k04_archiving_goes_step_by_step() -> TestResult {
    on_both(async |store| {
        asked(&store).await?;
        worker(&store.client).drain().await?;
        assert_eq!(places(&store).await?, (false, true));
        let requests: Vec<String> = store.requests().iter().map(ToString::to_string).collect();
        let at = |text: &str| {
            let found = requests.iter().position(|request| request.starts_with(text));
            found.unwrap_or_else(|| panic!("{text}: {requests:#?}"))
        };
        // Taken, which hides it; fetched; added; deleted; and only then the message goes.
        let steps = [
            at("apply Current Sales: Merge ~e3_"),
            at("read Current (Sales, empid_000456)"),
            at("apply Archive Sales: InsertOrReplace empid_000456"),
            at("apply Current Sales: Delete empid_000456"),
            at("apply Current Sales: Delete ~e3_"),
        ];
        assert!(steps.is_sorted(), "{requests:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k03_the_same_as_one_call() -> TestResult {
    on_both(async |store| {
        let (current, archive) = tables(&store.client).await?;
        let one = Employee { department: "Sales".into(), id: 456, last_name: "Jones".into() };
        let stored = current.insert(&one).await?;
        current.move_to(&stored, &archive).await?.wait().await?;
        assert_eq!(places(&store).await?, (false, true));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k06_k10_a_failure_at_any_step_ends_the_same_and_never_in_neither() -> TestResult {
    on_both(async |store| {
        for request in 0..6 {
            for carried_out in [false, true] {
                asked(&store).await?;
                let trouble = if carried_out {
                    InjectedFault::After(lost())
                } else {
                    InjectedFault::Before(lost())
                };
                store.fault.inject(RequestKind::Apply, request, trouble);
                let failed = Arc::new(AtomicU32::new(0));
                let seen = failed.clone();
                let other = store.other.clone();
                let worker = store.client.worker().on(move |cx, message: ArchiveEmployee| {
                    let (seen, other) = (seen.clone(), other.clone());
                    async move {
                        let done = archive(cx, message).await;
                        let current = other.table::<Employee>().get(point()).await?;
                        let archived = other.table_named::<Employee>("Archive");
                        if current.is_none() && archived.get(point()).await?.is_none() {
                            seen.fetch_add(1, Ordering::SeqCst);
                        }
                        done
                    }
                });
                // A message whose taking was lost is somebody's until its lease is over.
                let _ = worker.drain().await;
                store.fault.clear();
                let (current, archived) = places(&store).await?;
                assert!(current || archived);
                assert_eq!(failed.load(Ordering::SeqCst), 0, "it was in neither");
                if request > 0 {
                    worker.drain().await?;
                    assert_eq!(places(&store).await?, (false, true), "request {request}");
                }
                // Deleting what is gone is success: the whole flow once more changes nothing.
                let poisoned = worker.poisoned().await?;
                assert!(poisoned.is_empty());
                store.client.delete_table_if_exists("Current").await?;
                if store.is_emulator {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k07_a_message_that_was_not_finished_comes_again() -> TestResult {
    on_both(async |store| {
        asked(&store).await?;
        let count = Arc::new(AtomicU32::new(0));
        let counter = count.clone();
        let worker = store.client.worker().on(move |cx, message: ArchiveEmployee| {
            let counter = counter.clone();
            async move {
                archive(cx, message).await?;
                // Everything is done, and the message is not deleted.
                match counter.fetch_add(1, Ordering::SeqCst) {
                    0 => Err("the worker died".into()),
                    _ => Ok(()),
                }
            }
        });
        worker.drain().await?;
        assert_eq!(count.load(Ordering::SeqCst), 2);
        assert_eq!(places(&store).await?, (false, true));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k08_poison_goes_aside_after_some_attempts() -> TestResult {
    on_both(async |store| {
        asked(&store).await?;
        let worker = store
            .client
            .worker()
            .on(|_, _: ArchiveEmployee| async { Err("the archive is read-only".into()) });
        let stats = worker.drain().await?;
        assert_eq!((stats.poisoned, stats.open), (1, 0));
        let poisoned = worker.poisoned().await?;
        assert_eq!(poisoned[0].message(), Some("ArchiveEmployee"));
        assert_eq!(poisoned[0].error, "the archive is read-only");
        worker.requeue(&poisoned[0]).await?;
        self::worker(&store.client).drain().await?;
        assert_eq!(places(&store).await?, (false, true));
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn k09_only_failures_that_pass_are_repeated() -> TestResult {
    on_local(async |store| {
        let (current, _) = tables(&store.client).await?;
        let one = Employee { department: "Sales".into(), id: 456, last_name: "Jones".into() };
        current.insert(&one).await?;
        let policy = RetryPolicy::new();
        let patient = Client::builder().backend(store.fault.clone()).retry(policy).build()?;
        let current = patient.table::<Employee>();
        let fail_twice = |error: Error| {
            store.fault.clear();
            (0..2).for_each(|nth| {
                store.fault.inject(RequestKind::Read, nth, InjectedFault::Before(error.clone()))
            });
        };
        let passing = [
            Error::new(ErrorKind::Throttled, "slow down"),
            Error::service(ServiceCode::ServerBusy, "busy"),
            Error::service(ServiceCode::InternalError, "try again"),
            lost(),
        ];
        for error in passing {
            fail_twice(error.clone());
            let begun = Instant::now();
            assert!(current.get(point()).await?.is_some(), "{error}");
            assert_eq!(store.fault.pending(), 0, "{error}");
            assert!(begun.elapsed() > Duration::from_millis(1), "{error}: without a wait");
        }
        let lasting = [
            Error::new(ErrorKind::Denied, "the key is wrong"),
            Error::new(ErrorKind::Invalid, "the filter is wrong"),
            Error::new(ErrorKind::Corrupt, "the page is damaged"),
        ];
        for error in lasting {
            fail_twice(error.clone());
            let failed = current.get(point()).await.unwrap_err();
            assert_eq!(failed.kind(), error.kind());
            assert_eq!(store.fault.pending(), 1, "{error}: sent once");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k09_failures_that_pass_are_no_poison() -> TestResult {
    on_both(async |store| {
        asked(&store).await?;
        for at in 0..8 {
            let busy = Error::new(ErrorKind::Throttled, "slow down");
            store.fault.inject(RequestKind::Scan, at, InjectedFault::Before(busy));
        }
        let stats = worker(&store.client).drain().await?;
        assert_eq!((stats.poisoned, stats.open), (0, 0));
        assert_eq!(places(&store).await?, (false, true));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k11_several_workers_lose_and_double_nothing() -> TestResult {
    #[derive(Debug, TableEntity)]
    #[table(name = "Counts", partition_key = "{name}", row_key = "count")]
    struct Count {
        name: String,
        value: i64,
    }
    async fn counted(cx: Context, message: ArchiveEmployee) -> Result<(), BoxError> {
        let counts = cx.client().table::<Count>();
        let name = format!("c{}", message.id % 3);
        let mut egt = counts.transaction();
        match counts.get(Count::primary().name(&*name)).await? {
            Some(mut count) => {
                count.value += 1;
                egt.replace(&count)?;
            }
            None => {
                egt.insert(&Count { name, value: 1 })?;
            }
        }
        cx.once(egt).await?;
        Ok(())
    }
    on_both(async |store| {
        let (current, _) = tables(&store.client).await?;
        store.client.table::<Count>().create_if_not_exists().await?;
        for id in 0..12 {
            let mut egt = current.transaction();
            let message = ArchiveEmployee { department: "Sales".into(), id };
            egt.in_partition(format!("d{}", id % 4))?.emit(&message)?;
            egt.commit().await?;
        }
        let workers = [1, 2, 3].map(|_| store.other.worker().on(counted));
        let [a, b, c] = &workers;
        let (a, b, c) = tokio::join!(a.drain(), b.drain(), c.drain());
        for done in [a, b, c] {
            done?;
        }
        workers[0].drain().await?;
        let counts = store.client.table::<Count>();
        let counts = counts.query(Count::scan()).collect().await?;
        assert_eq!(counts.iter().map(|count| count.value).sum::<i64>(), 12);
        Ok(())
    })
    .await
}
