//! Tests the deadline of remote writes, with writers that are suspended right before a request leaves.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Batch, Deadline, Guard, OutboxOptions, Row, SteppedClock, Ticks, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Embedded, Memory, ReadRequest, Rows, ScanRequest,
        TableNames, TableRequest, layer::Recorder,
    },
    prelude::*,
};
use futures_util::FutureExt;

use crate::fixture::{Employee, employee};

/// How long after a primary was read or committed its copies may still be sent: the flight without the
/// time of a request and the service's 30 s.
const BOUND: Duration = Duration::from_secs(300 - 60 - 30);

type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A layer that suspends the first write of a copy, between the program's last look at its clocks and the
/// store.
#[derive(Clone)]
struct Suspending {
    inner: Arc<Memory>,
    pause: Arc<Mutex<Option<Pause>>>,
}

impl std::fmt::Debug for Suspending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Suspending")
    }
}

impl Backend for Suspending {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            if batch.partition_key().starts_with("email_") {
                let pause = self.pause.lock().unwrap().take();
                pause.unwrap_or_else(|| async {}.boxed()).await;
            }
            self.inner.apply(batch).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

struct World {
    clock: Arc<SteppedClock>,
    store: Suspending,
    staff: Table<Employee>,
    /// A client of the same store that is never suspended.
    other: Client,
}

impl World {
    async fn new(without: Option<Guard>) -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let inner = Arc::new(Memory::with_clock(clock.clone()));
        let store = Suspending { inner: inner.clone(), pause: Arc::default() };
        let builder = Client::builder().backend(store.clone()).clock(clock.clone());
        let builder = match without {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        };
        let other = Client::builder().backend(inner).clock(clock.clone()).build().unwrap();
        let staff = builder.build().unwrap().table::<Employee>();
        staff.create().await.unwrap();
        Self { clock, store, staff, other }
    }

    fn pause(&self, pause: impl Future<Output = ()> + Send + 'static) {
        *self.store.pause.lock().unwrap() = Some(pause.boxed());
    }

    /// Inserts an employee, and returns whether the copy is there then.
    async fn insert(&self) -> bool {
        self.staff.insert(&employee(1)).await.unwrap();
        self.has_copy().await
    }

    async fn has_copy(&self) -> bool {
        let email = Employee::by_email().email("Jones1@contoso.com").department("Sales").id(1);
        self.other.table::<Employee>().get(email).await.unwrap().is_some()
    }
}

const TICK: Duration = Duration::from_nanos(100);

#[tokio::test]
async fn a_suspended_writer_sends_nothing_after_the_deadline() {
    for (pause, is_written) in [
        (Duration::ZERO, true),
        (BOUND - TICK, true),
        (BOUND, false),
        (BOUND + Duration::from_secs(1), false),
        (OutboxOptions::WRITE_DEADLINE * 100, false),
    ] {
        for (without, is_written) in [(None, is_written), (Some(Guard::WriteDeadline), true)] {
            let world = World::new(without).await;
            let clock = world.clock.clone();
            // The timers' clock stands still meanwhile.
            world.pause(async move { clock.advance(pause) });
            assert_eq!(world.insert().await, is_written, "{pause:?}, {without:?}");
            // Workers do what the writer may not do any more.
            world.other.worker().with::<Employee>().drain().await.unwrap();
            assert!(world.has_copy().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_stands_still_stretches_no_deadline() {
    let world = World::new(None).await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    let mut other = stored.clone();
    other.email = "other@contoso.com".into();
    // The write of the new copy waits for longer than its request may take, and is not sent.
    world.pause(tokio::time::advance(BOUND));
    let other = world.staff.replace(&other).await.unwrap();
    assert!(other.wait_for_copies().await.is_err());
    let at = Employee::by_email().email("other@contoso.com").department("Sales").id(1);
    assert!(world.staff.get(at).await.unwrap().is_none());
}

/// While a writer is suspended, its entity is deleted and all open work is done, twice. The insert of its copy,
/// sent late, would stay for ever.
#[tokio::test]
async fn a_late_insert_brings_no_removed_copy_back() {
    for (without, comes_back) in [(None, false), (Some(Guard::WriteDeadline), true)] {
        let world = World::new(without).await;
        let (clock, other) = (world.clock.clone(), world.other.clone());
        world.pause(async move {
            let staff = other.table::<Employee>();
            assert!(staff.delete_at(employee(1).point()).await.unwrap());
            for _ in 0..3 {
                other.worker().drain().await.unwrap();
                clock.advance(OutboxOptions::WRITE_DEADLINE + Duration::from_secs(1));
            }
        });
        assert_eq!(world.insert().await, comes_back, "{without:?}");
        world.clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
        let open = world.other.worker().with::<Employee>().drain().await.unwrap();
        assert_eq!((open.open, world.has_copy().await), (0, comes_back), "{without:?}");
    }
}

#[tokio::test]
async fn stores_refuse_a_batch_whose_deadline_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Backend>; 3] = [
        Arc::new(Memory::new()),
        Arc::new(Embedded::open(folder.path().join("staff.db")).unwrap()),
        Arc::new(entable::backend::layer::Retry::around(
            Recorder::around(Memory::new()),
            RetryPolicy::default(),
        )),
    ];
    for store in stores {
        store.tables(TableRequest::Create("Staff")).await.unwrap();
        let clock = || Arc::new(entable::SystemClock);
        let batch = |deadline| {
            let row = Row::build("p", "r").finish().unwrap();
            let batch = Batch::single("Staff", entable::Operation::insert(row)).unwrap();
            batch.with_deadline(Some(Deadline::after(deadline, clock())))
        };
        let error = store.apply(&batch(Duration::ZERO)).await.unwrap_err();
        assert!(error.is_contended(), "{error}");
        let read = ReadRequest { table: "Staff", partition_key: "p", row_key: "r", select: None };
        assert!(store.read(read).await.unwrap().is_none());
        store.apply(&batch(Duration::from_secs(600))).await.unwrap();
    }
}
