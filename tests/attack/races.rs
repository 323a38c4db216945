//! Tests upgrades and lookups beside programs that write, fail and disappear.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use entable::{
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

mod counted {
    use entable::TableEntity;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{p}",
        row_key = "old_{id:04}",
        entity_type = "Counter",
        index(ByCount, row_key = "count_{count}_{id:04}")
    )]
    pub struct Old {
        pub p: String,
        pub id: u32,
        pub count: u32,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{p}",
        row_key = "new_{id:04}",
        version = 2,
        upgrade_from(Old),
        index(ByCount, row_key = "counts_{count}_{id:04}")
    )]
    pub struct Counter {
        pub p: String,
        pub id: u32,
        pub count: i64,
    }

    impl From<Old> for Counter {
        fn from(Old { p, id, count }: Old) -> Self {
            Self { p, id, count: i64::from(count) }
        }
    }
}

use counted::{Counter, Old};

const ROWS: u32 = 60;

/// Counts up a row as a program of either version does; a row that is not there, or not yet, is the
/// business of the other one.
async fn count_up(client: &Client, id: u32, done: &AtomicI64) {
    let (old, new) = (client.table::<Old>(), client.table::<Counter>());
    let was_old = old.update(Old::primary().p("p").id(id), |row| Ok(row.count += 1)).await;
    let changed = match was_old {
        Ok(_) => true,
        Err(error) if error.is_not_found() => {
            let point = Counter::primary().p("p").id(id);
            new.update(point, |row| Ok(row.count += 1)).await.is_ok()
        }
        Err(_) => false,
    };
    if changed {
        done.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upgrade_loses_no_write_of_either_program() -> Result<(), Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    let rows = (0..ROWS).map(|id| Old { p: "p".into(), id, count: 0 });
    client.bulk().insert_all(rows).await?.into_result()?;
    let done = Arc::new(AtomicI64::new(0));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (client, done) = (client.clone(), done.clone());
            tokio::spawn(async move {
                for step in 0..150_u32 {
                    count_up(&client, (writer * 37 + step * 7) % ROWS, &done).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let counters = client.table::<Counter>();
    let upgrades = [1_u32, 7, 1000].map(|size| {
        let counters = counters.clone();
        tokio::spawn(async move { counters.upgrade_all().page_size(size).await })
    });
    for upgrade in upgrades {
        let report = upgrade.await.unwrap()?;
        assert!(report.failed.iter().all(|failure| failure.error.is_contended()), "{report:?}");
    }
    for writer in writers {
        writer.await.unwrap();
    }
    counters.upgrade_all().await?.into_result()?;
    let rows = counters.query(Counter::primary().p("p")).collect().await?;
    assert_eq!(rows.len(), 60);
    let counted: i64 = rows.iter().map(|row| row.count).sum();
    assert_eq!(counted, done.load(Ordering::SeqCst), "a count was lost or made twice");
    let check = counters.check().await?;
    assert!(check.is_clean(), "{check:?}");
    let all = client.dynamic("Staff").query(Keys::partition("p")).collect().await?;
    assert_eq!(all.len(), 120, "sixty rows and their copies, nothing of version 1");
    Ok(())
}

#[tokio::test]
async fn an_upgrade_is_stopped_anywhere_and_begun_again() -> Result<(), Error> {
    for stop in 0..30 {
        let fault = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(fault.clone()).build()?;
        client.create_table("Staff").await?;
        let rows = (0..ROWS).map(|id| Old { p: format!("p{}", id % 3), id, count: id });
        client.bulk().insert_all(rows).await?.into_result()?;
        let lost = || Error::new(ErrorKind::Backend, "connection lost");
        let trouble = if stop % 2 == 0 {
            InjectedFault::Before(lost())
        } else {
            InjectedFault::After(lost())
        };
        fault.inject(RequestKind::Any, stop / 2, trouble);
        let counters = client.table::<Counter>();
        let first = counters.upgrade_all().page_size(10).await;
        assert!(fault.pending() > 0 || first.map_or(true, |report| !report.is_complete()));
        fault.clear();
        counters.upgrade_all().await?.into_result()?;
        let rows = counters.query(Counter::scan()).collect().await?;
        assert_eq!(rows.iter().map(|row| row.count).sum::<i64>(), (0..60).sum::<i64>());
        assert!(counters.check().await?.is_clean());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_outlives_accesses_that_are_dropped() -> Result<(), Error> {
    let fault = FaultInjector::around(Memory::new());
    let recorder = Recorder::around(fault.clone());
    let client = Client::builder().backend(recorder.clone()).build()?;
    client.create_table("Staff").await?;
    let rows = (0..5).map(|id| Counter { p: "p".into(), id, count: 0 });
    client.bulk().insert_all(rows).await?.into_result()?;
    let table = client.table::<Counter>();
    let lookup = Lookup::new(table.query(Counter::primary().p("p")), Duration::from_secs(600));
    recorder.clear();
    for nth in 0..200 {
        fault.inject(RequestKind::Scan, nth, InjectedFault::Delay(Duration::from_millis(2)));
    }
    let tasks: Vec<_> = (0..200_u64)
        .map(|number| {
            let lookup = lookup.clone();
            tokio::spawn(async move {
                let access = async {
                    match number % 5 {
                        0 => lookup.refresh().await.map(|()| 5),
                        1 => {
                            lookup.forget();
                            lookup.all().await.map(|rows| rows.len())
                        }
                        _ => lookup.all().await.map(|rows| rows.len()),
                    }
                };
                let patience = Duration::from_micros(number * 37 % 4000);
                tokio::time::timeout(patience, access).await
            })
        })
        .collect();
    for task in tasks {
        if let Ok(rows) = task.await.unwrap() {
            assert_eq!(rows?, 5);
        }
    }
    fault.clear();
    lookup.forget();
    assert_eq!(lookup.all().await?.len(), 5, "no access is left holding the flight");
    recorder.clear();
    assert_eq!(lookup.all().await?.len(), 5);
    assert_eq!(recorder.count(), 0);
    Ok(())
}
