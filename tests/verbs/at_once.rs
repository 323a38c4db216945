//! Tests that remote copies are there when a verb returns, on the stores of one process.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use entable::{
    Error, OutboxOptions,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
    batch::{Batch, Written},
    object_store::local::LocalFileSystem,
    prelude::*,
    row::Row,
};
use futures_util::{StreamExt, stream};
use tokio::runtime::{Builder, Runtime};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dep_{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id:06}"),
    index(ByBadge, table = "Badges", partition_key = "{badge}", row_key = "badge", unique),
    list(ByTown, partition_key = "town_{town}", row_key = "all")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    badge: String,
    town: String,
    age: i32,
}

fn employee(id: u32, name: &str) -> Employee {
    Employee {
        department: format!("D{}", id % 3),
        id,
        email: format!("{name}{id}@a.com"),
        badge: format!("{name}-{id}"),
        town: format!("{name}{id}"),
        age: 30,
    }
}

/// Asserts that each way to an employee leads to exactly that one, or to none.
async fn assert_found(staff: &Table<Employee>, wanted: &Employee, is_there: bool, verb: &str) {
    let Employee { department, id, email, badge, town, .. } = wanted;
    let email = Employee::by_email().email(email).department(department).id(*id);
    let found = [
        staff.get(email).await.unwrap().map(Stored::into_inner),
        staff.get(Employee::by_badge().badge(badge)).await.unwrap().map(Stored::into_inner),
        staff.query(Employee::by_town().town(town)).first().await.unwrap().map(Stored::into_inner),
    ];
    let expected = is_there.then(|| wanted.clone());
    assert!(found.iter().all(|one| *one == expected), "{verb}: {found:?}");
}

/// Calls every verb that writes one entity, and reads through all copies after each.
async fn call_verbs(client: &Client, round: u32) {
    let staff = client.table::<Employee>();
    let at = |one: &Employee| Employee::primary().department(&one.department).id(one.id);
    let mut don = staff.insert(&employee(round, "don")).await.unwrap();
    assert_found(&staff, &don, true, "insert").await;
    let old = don.clone().into_inner();
    don.email = format!("donald{round}@a.com");
    don.badge = format!("new-{round}");
    don.town = format!("Rome{round}");
    let mut don = staff.replace(&don).await.unwrap();
    assert_found(&staff, &don, true, "replace").await;
    assert_found(&staff, &old, false, "replace").await;
    don.age = 31;
    staff.replace_any(&don).await.unwrap();
    assert_found(&staff, &don, true, "replace_any").await;
    let don = staff
        .update(at(&don), |one| {
            one.age += 1;
            Ok(())
        })
        .await
        .unwrap();
    assert_found(&staff, &don, true, "update").await;
    staff.patch(&don, Employee::patch().age(40)).await.unwrap();
    staff.patch_at(at(&old), Employee::patch().email(&old.email)).await.unwrap();
    let patched = Employee { email: old.email.clone(), age: 40, ..don.into_inner() };
    assert_found(&staff, &patched, true, "patch_at").await;
    staff.insert_or_replace(&old).await.unwrap();
    assert_found(&staff, &old, true, "insert_or_replace").await;
    let merged = Employee { town: format!("Oslo{round}"), ..old.clone() };
    let stored = staff.insert_or_merge(&merged).await.unwrap();
    assert_found(&staff, &merged, true, "insert_or_merge").await;
    let mut moving = stored.clone();
    moving.department = format!("Other{round}");
    staff.move_to(&moving, &staff).await.unwrap();
    assert_found(&staff, &moving, true, "move_to").await;
    assert!(staff.delete_at(at(&moving)).await.unwrap());
    assert_found(&staff, &moving, false, "delete_at").await;
    let (jun, kim) = (employee(round, "jun"), employee(round + 3000, "kim"));
    let mut transaction = client.transaction();
    transaction.insert(&jun).unwrap().insert(&kim).unwrap();
    transaction.commit().await.unwrap();
    assert_found(&staff, &jun, true, "transaction").await;
    assert_found(&staff, &kim, true, "transaction").await;
    let stored = staff.get(at(&jun)).await.unwrap().unwrap();
    staff.delete(&stored).await.unwrap();
    assert_found(&staff, &jun, false, "delete").await;
    let many: Vec<_> = (0..4).map(|one| employee(10_000 + round * 4 + one, "lee")).collect();
    assert!(client.bulk().insert_all(many.clone()).await.unwrap().failed.is_empty());
    for one in &many {
        assert_found(&staff, one, true, "bulk").await;
    }
}

async fn call_rounds(client: Client, rounds: u32) {
    client.table::<Employee>().create().await.unwrap();
    for round in 0..rounds {
        Box::pin(call_verbs(&client, round)).await;
    }
}

fn on_one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn on_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn copies_in_memory_are_there_when_a_verb_returns() {
    on_one_thread().block_on(call_rounds(Client::memory(), 40));
    on_threads().block_on(async { tokio::spawn(call_rounds(Client::memory(), 40)).await }).unwrap();
}

#[test]
fn copies_in_a_file_are_there_when_a_verb_returns() {
    for runtime in [on_one_thread(), on_threads()] {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::open(folder.path().join("staff.db")).unwrap();
        runtime.block_on(call_rounds(client, 20));
    }
}

#[test]
fn a_runtime_without_timers_writes_copies_too() {
    let bare = Builder::new_current_thread().build().unwrap();
    bare.block_on(call_rounds(Client::memory(), 2));
}

/// A store that other processes may write too, as far as a client knows.
#[derive(Debug)]
struct Shared(Memory);

impl Backend for Shared {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("shared", false)
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.0.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

#[test]
fn a_shared_store_needs_no_timers() {
    let build = |before| {
        let outbox = OutboxOptions::default().copies_before_answer(before);
        Client::builder().backend(Shared(Memory::new())).outbox(outbox).build().unwrap()
    };
    let bare = Builder::new_current_thread().build().unwrap();
    bare.block_on(call_rounds(build(true), 2));
    bare.block_on(async {
        let staff = build(false).table::<Employee>();
        staff.create().await.unwrap();
        let stored = staff.insert(&employee(1, "don")).await.unwrap();
        stored.wait_for_copies().await.unwrap();
        assert_found(&staff, &stored, true, "insert").await;
    });
}

#[test]
fn writers_that_meet_wait_without_timers() {
    const ROUNDS: i32 = 100;
    let store: Arc<dyn Backend> = Arc::new(Memory::new());
    let bare = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let clients = [(); 2].map(|()| Client::builder().backend(store.clone()).build().unwrap());
    bare.block_on(async {
        let staff = clients[0].table::<Employee>();
        staff.create().await.unwrap();
        let first = staff.insert(&employee(1, "don")).await.unwrap();
        // Two writers of each client: those of one client wait for a lock, the others for a lost race.
        let writers = [0, 0, 1, 1].map(|client| {
            let staff = clients[client].table::<Employee>();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let at = Employee::primary().department("D1").id(1);
                    let add = |one: &mut Employee| {
                        one.age += 1;
                        Ok(())
                    };
                    staff.update(at, add).await.unwrap();
                }
            })
        });
        for writer in writers {
            writer.await.unwrap();
        }
        let at = Employee::primary().department("D1").id(1);
        let last = staff.get(at).await.unwrap().unwrap();
        assert_eq!(last.age, first.age + 4 * ROUNDS);
    });
}

#[test]
fn a_slow_stream_is_written_without_timers() {
    let bare = Builder::new_current_thread().build().unwrap();
    bare.block_on(async {
        let client = Client::memory();
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        let slow = stream::iter(0..5).then(|id| async move {
            tokio::task::yield_now().await;
            employee(id, "don")
        });
        let report = client.bulk().insert_stream(pin!(slow)).await.unwrap();
        assert_eq!((report.done, report.failed.len()), (5, 0));
    });
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id}",
    list(ByTown, partition_key = "towns", row_key = "{town}", in_blob)
)]
struct Listed {
    department: String,
    id: u32,
    town: String,
}

#[test]
fn a_list_in_a_directory_needs_no_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let client = Client::builder().backend(Memory::new()).blobs(Arc::new(blobs)).build().unwrap();
    let mut verbs = pin!(async {
        let staff = client.table::<Listed>();
        staff.create().await.unwrap();
        let one = Listed { department: "D1".into(), id: 1, town: "Oslo".into() };
        let stored = staff.insert(&one).await.unwrap();
        let in_oslo = || Listed::by_town().town("Oslo");
        assert_eq!(staff.query(in_oslo()).collect().await.unwrap().len(), 1);
        staff.delete(&stored).await.unwrap();
        assert!(staff.query(in_oslo()).collect().await.unwrap().is_empty());
    });
    while verbs.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

#[test]
fn no_runtime_is_needed() {
    let mut rounds = pin!(call_rounds(Client::memory(), 2));
    // The store in memory wakes its caller at once, so that polling again is enough.
    while rounds.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

#[tokio::test]
async fn many_writers_at_once_leave_nothing_to_workers() {
    let outbox = OutboxOptions::default().background(1);
    let client = Client::builder().backend(Memory::new()).outbox(outbox).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let writes = (0..50).map(|id| {
        let staff = staff.clone();
        async move {
            let stored = staff.insert(&employee(id, "don")).await.unwrap();
            assert_found(&staff, &stored, true, "insert").await;
            stored.wait_for_copies().await.unwrap();
        }
    });
    futures_util::future::join_all(writes).await;
}

#[tokio::test]
async fn copies_that_fail_do_not_fail_the_verb() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    staff.insert(&employee(3, "registers")).await.unwrap();
    // Three requests come before the answer is certain: the claim, the reservation and the commit.
    for request in 3..8 {
        let failure = Error::new(ErrorKind::Backend, "connection lost");
        fault.inject(RequestKind::Apply, request, InjectedFault::Before(failure));
    }
    let don = staff.insert(&employee(6, "don")).await.unwrap();
    assert!(don.wait_for_copies().await.is_err());
    let email = Employee::by_email().email("don6@a.com").department("D0").id(6);
    assert!(staff.get(email).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_verb_that_nobody_waits_for_any_more_still_writes_its_copies() {
    let mut committed = 0;
    for polls in 1..100 {
        let slow = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(slow.clone()).build().unwrap();
        let staff = client.table::<Employee>();
        staff.create().await.unwrap();
        for request in 0..20 {
            slow.inject(RequestKind::Any, request, InjectedFault::Delay(Duration::from_millis(5)));
        }
        let don = employee(3, "don");
        {
            let mut insert = pin!(staff.insert(&don));
            for _ in 0..polls {
                let once =
                    std::future::poll_fn(|context| Poll::Ready(insert.as_mut().poll(context)));
                if once.await.is_ready() {
                    assert!(
                        committed > 1,
                        "the verb was given up between its commit and its copies"
                    );
                    return;
                }
                tokio::time::sleep(Duration::from_millis(6)).await;
            }
        }
        client.wait_for_copies().await;
        let primary = Employee::primary().department("D0").id(3);
        if staff.get(primary).await.unwrap().is_some() {
            committed += 1;
            assert_found(&staff, &don, true, "a verb that was given up").await;
        }
    }
    panic!("the verb never ended");
}
