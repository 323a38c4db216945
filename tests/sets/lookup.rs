//! Tests lookups: one read for many accesses.

use std::{sync::Arc, time::Duration};

use entable::{
    Lookup, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use futures_util::FutureExt;
use tokio::time::timeout;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Departments", partition_key = "departments", row_key = "{id:04}")]
pub struct Department {
    pub id: u32,
    pub name: String,
}

fn department(id: u32) -> Department {
    Department { id, name: format!("department {id}") }
}

struct Fixture {
    fault: FaultInjector,
    recorder: Recorder,
    clock: Arc<SteppedClock>,
    table: Table<Department>,
    lookup: Lookup<Department>,
}

async fn fixture() -> Fixture {
    let fault = FaultInjector::around(Memory::new());
    let recorder = Recorder::around(fault.clone());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let table = client.table::<Department>();
    table.create().await.unwrap();
    table.bulk().insert_all((1..=3).map(department)).await.unwrap();
    recorder.clear();
    let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    let query = table.query(Department::primary());
    let lookup = Lookup::with_clock(query, Duration::from_secs(60), clock.clone());
    Fixture { fault, recorder, clock, table, lookup }
}

#[tokio::test]
async fn only_the_first_access_asks_until_it_is_old() -> Result<(), Error> {
    let Fixture { recorder, clock, table, lookup, .. } = fixture().await;
    let point = |id: u32| Department::primary().id(id);
    for _ in 0..10 {
        assert_eq!(lookup.get(&point(2)).await?.unwrap().name, "department 2");
        assert!(lookup.get(&point(9)).await?.is_none());
        assert_eq!(lookup.all().await?.len(), 3);
    }
    let by_name = lookup.index(|department| department.name.clone()).await?;
    assert_eq!(by_name["department 3"].id, 3);
    assert_eq!(recorder.count(), 1);
    table.insert(&department(9)).await?;
    recorder.clear();
    clock.advance(Duration::from_secs(59));
    assert!(lookup.get(&point(9)).await?.is_none());
    assert_eq!(recorder.count(), 0);
    clock.advance(Duration::from_secs(1));
    assert!(lookup.get(&point(9)).await?.is_some());
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_refresh_is_asked_for() -> Result<(), Error> {
    let Fixture { recorder, table, lookup, .. } = fixture().await;
    assert_eq!(lookup.all().await?.len(), 3);
    table.insert(&department(4)).await?;
    recorder.clear();
    assert_eq!(lookup.all().await?.len(), 3);
    lookup.refresh().await?;
    assert_eq!(lookup.all().await?.len(), 4);
    assert_eq!(recorder.count(), 1);
    lookup.forget();
    assert_eq!(lookup.clone().all().await?.len(), 4);
    assert_eq!(recorder.count(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accesses_that_meet_share_one_read() -> Result<(), Error> {
    let Fixture { fault, recorder, lookup, .. } = fixture().await;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_millis(50)));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let lookup = lookup.clone();
            tokio::spawn(async move { lookup.all().await.map(|rows| rows.len()) })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap()?, 3);
    }
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_failed_read_is_not_kept() -> Result<(), Error> {
    let Fixture { fault, recorder, clock, lookup, .. } = fixture().await;
    let lost = || InjectedFault::Before(Error::new(ErrorKind::Backend, "connection lost"));
    fault.inject(RequestKind::Scan, 0, lost());
    assert!(lookup.all().await.unwrap_err().is_backend());
    assert_eq!(lookup.all().await?.len(), 3);
    fault.inject(RequestKind::Scan, 0, lost());
    assert!(lookup.refresh().await.unwrap_err().is_backend());
    assert_eq!(lookup.all().await?.len(), 3, "what was kept stays");
    assert_eq!(recorder.count(), 3);
    clock.advance(Duration::from_secs(60));
    fault.inject(RequestKind::Scan, 0, lost());
    assert!(lookup.all().await.unwrap_err().is_backend(), "what is too old is not handed out");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dropped_reader_leaves_the_read_to_the_next() -> Result<(), Error> {
    let Fixture { fault, recorder, lookup, .. } = fixture().await;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_secs(3600)));
    let first = lookup.clone();
    let stuck = tokio::spawn(async move { first.all().await.map(|rows| rows.len()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = lookup.clone();
    let waiting = tokio::spawn(async move { second.all().await.map(|rows| rows.len()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    stuck.abort();
    assert!(stuck.await.unwrap_err().is_cancelled());
    assert_eq!(waiting.await.unwrap()?, 3);
    assert_eq!(lookup.all().await?.len(), 3);
    assert_eq!(recorder.count(), 2, "the one that was dropped, and the one after it");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn accesses_that_wait_share_the_error_too() -> Result<(), Error> {
    let Fixture { fault, recorder, lookup, .. } = fixture().await;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let lost = InjectedFault::Before(Error::new(ErrorKind::Backend, "connection lost"));
    fault.inject(RequestKind::Scan, 0, lost);
    let accesses = futures_util::future::join_all((0..20).map(|_| lookup.all())).await;
    assert!(accesses.into_iter().all(|rows| rows.is_err_and(|error| error.is_backend())));
    assert_eq!(recorder.count(), 1);
    assert_eq!(lookup.all().await?.len(), 3, "the next access asks again");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_it_was_forgotten_is_not_kept() -> Result<(), Error> {
    let Fixture { fault, recorder, table, lookup, .. } = fixture().await;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let (early, ()) = tokio::join!(lookup.all(), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        lookup.forget();
    });
    assert_eq!(early?.len(), 3);
    table.insert(&department(4)).await?;
    recorder.clear();
    assert_eq!(lookup.all().await?.len(), 4);
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refreshes_that_meet_share_a_read_that_began_after_them() -> Result<(), Error> {
    let Fixture { fault, recorder, table, lookup, .. } = fixture().await;
    for nth in 0..2 {
        fault.inject(RequestKind::Scan, nth, InjectedFault::Delay(Duration::from_secs(1)));
    }
    let early = lookup.clone();
    let early = tokio::spawn(async move { early.refresh().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    table.insert(&department(4)).await?;
    recorder.clear();
    let late = futures_util::future::try_join_all((0..20).map(|_| lookup.refresh()));
    late.await?;
    early.await.unwrap()?;
    assert_eq!(lookup.all().await?.len(), 4, "none shares a read from before the insert");
    assert_eq!(recorder.count(), 1, "twenty refreshes, one read: {recorder}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_access_that_nobody_polls_holds_up_no_other() -> Result<(), Error> {
    let Fixture { fault, table, lookup, .. } = fixture().await;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let mut first = Box::pin(lookup.all());
    assert!((&mut first).now_or_never().is_none(), "the read is on its way");
    let second = timeout(Duration::from_secs(60), lookup.all()).await.expect("it is polled")?;
    assert_eq!(second.len(), 3);
    table.insert(&department(4)).await?;
    fault.inject(RequestKind::Scan, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let mut refresh = Box::pin(lookup.refresh());
    assert!((&mut refresh).now_or_never().is_none(), "the read is on its way");
    timeout(Duration::from_secs(60), lookup.refresh()).await.expect("it is polled")?;
    assert_eq!(lookup.all().await?.len(), 4);
    // Late answers do not replace what was read after them.
    table.insert(&department(5)).await?;
    lookup.refresh().await?;
    assert_eq!(first.await?.len(), 5);
    refresh.await?;
    assert_eq!(lookup.all().await?.len(), 5);
    Ok(())
}

/// A read that is polled late ends after a newer one, which stays.
#[tokio::test(start_paused = true)]
async fn a_late_read_does_not_replace_a_newer_one() -> Result<(), Error> {
    let Fixture { fault, recorder, table, lookup, .. } = fixture().await;
    assert_eq!(lookup.all().await?.len(), 3);
    fault.inject(RequestKind::Scan, 0, InjectedFault::ShortPage(1));
    fault.inject(RequestKind::Scan, 1, InjectedFault::Delay(Duration::from_secs(1)));
    recorder.clear();
    let mut late = Box::pin(lookup.refresh());
    assert!((&mut late).now_or_never().is_none(), "the second page is on its way");
    assert_eq!(recorder.count(), 1, "the first page is read");
    table.delete_at(Department::primary().id(1)).await?;
    timeout(Duration::from_secs(60), lookup.refresh()).await.expect("it is polled")?;
    assert_eq!(lookup.all().await?.len(), 2);
    late.await?;
    assert_eq!(lookup.all().await?.len(), 2);
    Ok(())
}
