//! Tests moves to other partitions and tables: the design guide's archive, and Sales to Marketing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    Batch, Guard, OutboxOptions, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
        layer::{InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use time::{OffsetDateTime, macros::datetime};

use crate::{
    fixture::{Employee, World, employee},
    hooked::Hooked,
};

/// How long a worker's lease lasts for other workers: a second longer than for itself.
const A_LEASE: Duration = Duration::from_secs(61);

/// Where employee 456 is: in `Current`, in `Archive`.
async fn places(world: &World) -> (bool, bool) {
    let point = || Employee::primary().department("Sales").id(456);
    let current = world.client.table_named::<Employee>("Current").get(point()).await.unwrap();
    let archive = world.client.table_named::<Employee>("Archive").get(point()).await.unwrap();
    (current.is_some(), archive.is_some())
}

async fn archive_world() -> (World, Table<Employee>, Table<Employee>) {
    let world = World::left_to_workers().await;
    let current = world.client.table_named::<Employee>("Current");
    let archive = world.client.table_named::<Employee>("Archive");
    current.create().await.unwrap();
    archive.create().await.unwrap();
    world.client.create_table_if_not_exists("EntableDirectory").await.unwrap();
    (world, current, archive)
}

#[tokio::test]
async fn an_employee_is_archived() {
    let (world, current, archive) = archive_world().await;
    let stored = current.insert(&employee(456)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    // The message waits; a typed writer keeps off.
    assert_eq!(places(&world).await, (true, false));
    let error = current.insert_or_replace(&employee(456)).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("moving"), "{error}");
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    assert_eq!(places(&world).await, (false, true));
    let point = Employee::primary().department("Sales").id(456);
    assert_eq!(*archive.get(point).await.unwrap().unwrap(), employee(456));
    // The copies are those of the archive; the one in a table of its own changed its owner.
    let by_email =
        || Employee::by_email().email("jones456@contoso.com").department("Sales").id(456);
    assert!(current.get(by_email()).await.unwrap().is_none());
    assert!(archive.get(by_email()).await.unwrap().is_some());
    assert_eq!(world.rows("StaffByName", "Jones").await, ["name_Sales_00000456"]);
    for _ in 0..3 {
        world.later(OutboxOptions::WRITE_DEADLINE);
        worker.drain().await.unwrap();
    }
    assert_eq!(world.rows("StaffByName", "Jones").await, ["name_Sales_00000456"]);
    let left = |rows: Vec<String>| rows.into_iter().filter(|key| key.starts_with("~e")).count();
    assert_eq!(left(world.rows("Current", "Sales").await), 0);
    assert_eq!(left(world.rows("Archive", "Sales").await), 0);
    assert_eq!(world.markers().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_step_leaves_the_employee_in_one_table_in_the_end() {
    // Requests of the worker, one of which fails, before or after it was carried out; then it dies.
    for request in 0..24 {
        for carried_out in [false, true] {
            let (world, current, archive) = archive_world().await;
            let stored = current.insert(&employee(456)).await.unwrap();
            world.client.worker().drain().await.unwrap();
            current.move_to(&stored, &archive).await.unwrap();
            let lost = || Error::new(ErrorKind::Backend, "connection lost");
            let trouble = if carried_out {
                InjectedFault::After(lost())
            } else {
                InjectedFault::Before(lost())
            };
            world.fault.inject(RequestKind::Any, request, trouble);
            for at in request + 1..request + 60 {
                world.fault.inject(RequestKind::Any, at, InjectedFault::Before(lost()));
            }
            let _ = world.client.worker().drain().await;
            world.fault.clear();
            let (in_current, in_archive) = places(&world).await;
            assert!(in_current || in_archive, "it is nowhere after request {request}");
            // The lease of the worker that died is over, for others a second later than for itself.
            world.later(A_LEASE);
            let other = world.other_client();
            other.worker().with::<Employee>().drain().await.unwrap();
            assert_eq!(places(&world).await, (false, true), "request {request}, {carried_out}");
        }
    }
}

#[tokio::test]
async fn a_place_that_is_taken_leaves_the_employee_where_it_was() {
    let (world, current, archive) = archive_world().await;
    let stored = current.insert(&employee(456)).await.unwrap();
    archive.insert(&employee(456)).await.unwrap();
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    worker.drain().await.unwrap();
    // Beside the move, the copy in the table that both share: one place, two entities.
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(
        poisoned.iter().filter_map(|one| one.message()).collect::<Vec<_>>(),
        ["entable.move"]
    );
    assert_eq!(places(&world).await, (true, true));
    // Nothing is lost, and it can be written again.
    current.insert_or_replace(&employee(456)).await.unwrap();
}

#[tokio::test]
async fn an_employee_changes_departments() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    stored.department = "Marketing".into();
    // No transaction does it, and the error says what does.
    let error = world.staff.replace(&stored).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("move_to"), "{error}");
    world.staff.move_to(&stored, &world.staff).await.unwrap().wait().await.unwrap();
    let at = |department: &str| Employee::primary().department(department).id(1);
    assert!(world.staff.get(at("Sales")).await.unwrap().is_none());
    assert!(world.staff.get(at("Marketing")).await.unwrap().is_some());
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.rows("Staff", "email_jones1@contoso.com").await, ["at_Marketing_000001"]);
}

#[tokio::test]
async fn a_change_by_an_unknowing_writer_on_the_way_is_not_lost() {
    let (world, current, archive) = archive_world().await;
    let stored = current.insert(&employee(456)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    // Arrived, and not gone yet.
    let broken = Error::new(ErrorKind::Backend, "connection lost");
    let mut worker = world.other_client().worker().with::<Employee>();
    // First it is taken and registered, then it arrives.
    for applied in [3, 2] {
        world.fault.clear();
        world.later(A_LEASE);
        for at in applied..applied + 40 {
            world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(broken.clone()));
        }
        worker = world.client.worker();
        let _ = worker.drain().await;
        if places(&world).await == (true, true) {
            break;
        }
    }
    world.fault.clear();
    assert_eq!(places(&world).await, (true, true));
    let rows = world.client.dynamic("Current");
    let patch = DynamicEntity::new("Sales", "empid_000456").with("Age", 77);
    rows.insert_or_merge(&patch).await.unwrap();
    world.later(A_LEASE);
    worker.drain().await.unwrap();
    assert_eq!(places(&world).await, (false, true));
    let point = Employee::primary().department("Sales").id(456);
    assert_eq!(archive.get(point).await.unwrap().unwrap().age, 77);
}

#[tokio::test]
async fn more_than_the_keys_does_not_move() {
    let world = World::new().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    assert!(world.staff.move_to(&stored, &world.staff).await.unwrap_err().is_invalid());
    stored.department = "Marketing".into();
    stored.age += 1;
    assert!(world.staff.move_to(&stored, &world.staff).await.unwrap_err().is_invalid());
}

/// A store that takes nothing in one table, and says that it never will.
#[derive(Debug)]
struct Refusing(Memory);

impl Backend for Refusing {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.0.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        if batch.table() == "Archive" {
            let refused = Error::new(ErrorKind::Rejected, "the account is closed for writing");
            return Box::pin(async move { Err(refused) });
        }
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

/// A move that fails permanently is put into the poison table, and the entity can be written again.
#[tokio::test]
async fn a_move_that_never_can_be_is_given_up() {
    let store = Refusing(Memory::new());
    let outbox = OutboxOptions::default().background(0);
    let client = Client::builder().backend(store).outbox(outbox).build().unwrap();
    let (current, archive) =
        (client.table_named::<Employee>("Current"), client.table_named::<Employee>("Archive"));
    current.create().await.unwrap();
    archive.create().await.unwrap();
    let stored = current.insert(&employee(456)).await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    assert!(current.insert_or_replace(&employee(456)).await.unwrap_err().is_conflict());
    let worker = client.worker();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.open), (1, 0), "{stats:?}");
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(poisoned[0].message(), Some("entable.move"));
    assert!(poisoned[0].error.contains("closed for writing"), "{}", poisoned[0].error);
    current.insert_or_replace(&employee(456)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_entity_moves_on_when_its_last_move_is_over() {
    let mut met_both = 0;
    for request in 0..24 {
        let (world, current, archive) = archive_world().await;
        let stored = current.insert(&employee(456)).await.unwrap();
        world.client.worker().drain().await.unwrap();
        current.move_to(&stored, &archive).await.unwrap();
        let lost = || Error::new(ErrorKind::Backend, "connection lost");
        for at in request..request + 60 {
            world.fault.inject(RequestKind::Any, at, InjectedFault::Before(lost()));
        }
        let _ = world.client.worker().drain().await;
        world.fault.clear();
        if places(&world).await != (true, true) {
            continue;
        }
        met_both += 1;
        let point = || Employee::primary().department("Sales").id(456);
        let arrived = archive.get(point()).await.unwrap().unwrap();
        // Back, before it has left for good: nothing begins.
        let error = archive.move_to(&arrived, &current).await.unwrap_err();
        assert!(error.is_conflict() && error.to_string().contains("moving"), "{error}");
        for _ in 0..3 {
            world.client.worker().drain().await.unwrap();
            world.later(OutboxOptions::WRITE_DEADLINE);
        }
        assert_eq!(places(&world).await, (false, true));
        let arrived = archive.get(point()).await.unwrap().unwrap();
        archive.move_to(&arrived, &current).await.unwrap();
        world.client.worker().drain().await.unwrap();
        assert_eq!(places(&world).await, (true, false));
    }
    assert!(met_both > 0, "no request is between arriving and leaving");
}

/// A store in which the writes to one table are on their way for long, and their answers are lost.
#[derive(Debug)]
struct Late {
    store: Recorder,
    on_the_way: Arc<Mutex<Option<Batch>>>,
}

impl Backend for Late {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.store.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.store.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        let is_arrival =
            |operation: &entable::Operation| operation.row().row_key().starts_with("~e4_");
        if batch.table() == "Archive" && batch.operations().iter().any(is_arrival) {
            *self.on_the_way.lock().unwrap() = Some(batch.clone());
            let lost = Error::new(ErrorKind::Backend, "connection lost");
            return Box::pin(async move { Err(lost) });
        }
        self.store.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.store.tables(request)
    }
}

#[tokio::test(start_paused = true)]
async fn an_entity_does_not_arrive_after_its_move_was_given_up() {
    for without in [None, Some(Guard::Tombstone)] {
        let (world, current, archive) = archive_world().await;
        let stored = current.insert(&employee(456)).await.unwrap();
        world.client.worker().drain().await.unwrap();
        current.move_to(&stored, &archive).await.unwrap();
        let on_the_way = Arc::new(Mutex::new(None));
        let late = Late { store: world.recorder.clone(), on_the_way: on_the_way.clone() };
        let builder = || Client::builder().clock(world.clock.clone());
        let slow = builder().backend(late).build().unwrap();
        slow.worker().with::<Employee>().drain().await.unwrap_err();
        let arrival = on_the_way.lock().unwrap().take().expect("it is on its way");
        // By now the target is taken, so that another worker gives the move up.
        let rows = world.client.dynamic("Archive");
        rows.insert(&DynamicEntity::new("Sales", "empid_000456")).await.unwrap();
        let builder = builder().backend(world.recorder.clone());
        let builder = match without {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        };
        let worker = builder.build().unwrap().worker().with::<Employee>();
        let stats = worker.drain().await.unwrap();
        assert_eq!(worker.poisoned().await.unwrap().len(), 1, "{stats:?}");
        assert!(rows.delete_at("Sales", "empid_000456").await.unwrap());
        // The slow write lands.
        let landed = world.recorder.apply(&arrival).await;
        assert_eq!(landed.is_ok(), without.is_some(), "{landed:?}");
        if let Err(error) = landed {
            assert!(error.to_string().contains("RowKey `~e4_"), "{error}");
        }
        assert_eq!(places(&world).await, (true, without.is_some()), "{stats:?}");
        current.insert_or_replace(&employee(456)).await.unwrap();
        // The tombstone goes when nothing can be on its way any more.
        for _ in 0..2 {
            world.later(OutboxOptions::WRITE_DEADLINE);
            worker.drain().await.unwrap();
        }
        let left = world.rows("Archive", "Sales").await;
        assert!(!left.iter().any(|key| key.starts_with("~e4_")), "{without:?}, {left:?}");
        assert!(!world.rows("Current", "Sales").await.iter().any(|key| key.starts_with("~e3_")));
    }
}

fn is_tombstone(one: &entable::Operation) -> bool {
    one.row().get("GivenUp").is_ok_and(|it| it.is_some())
}

/// The arrival lands after the target was found to be taken, and before the tombstone is written.
#[tokio::test(start_paused = true)]
async fn an_entity_that_has_arrived_when_its_move_is_given_up_leaves_the_source() {
    let (world, current, archive) = archive_world().await;
    let stored = current.insert(&employee(456)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    let on_the_way = Arc::new(Mutex::new(None));
    let late = Late { store: world.recorder.clone(), on_the_way: on_the_way.clone() };
    let builder = || Client::builder().clock(world.clock.clone());
    let slow = builder().backend(late).build().unwrap();
    slow.worker().with::<Employee>().drain().await.unwrap_err();
    let arrival = on_the_way.lock().unwrap().take().expect("it is on its way");
    let rows = world.client.dynamic("Archive");
    rows.insert(&DynamicEntity::new("Sales", "empid_000456")).await.unwrap();
    let store = world.recorder.clone();
    let store = Hooked::before(world.recorder.clone(), is_tombstone, async move {
        assert!(rows.delete_at("Sales", "empid_000456").await.unwrap());
        store.apply(&arrival).await.unwrap();
    });
    let worker = builder().backend(store).build().unwrap().worker().with::<Employee>();
    worker.drain().await.unwrap();
    assert_eq!(places(&world).await, (false, true));
    assert_eq!(worker.poisoned().await.unwrap().len(), 1, "it was being given up");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
struct Login {
    user: String,
    at: OffsetDateTime,
}

/// Without a tombstone, a carrier that is slow would create the table and insert the entity there.
#[tokio::test]
async fn an_entity_does_not_arrive_in_a_dated_table_after_its_move_was_given_up() {
    let world = World::left_to_workers().await;
    let logins = world.client.table::<Login>();
    let there = datetime!(2014-07-31 12:00 UTC);
    let mut stored = logins.insert(&Login { user: "don".into(), at: there }).await.unwrap();
    stored.at += time::Duration::DAY;
    logins.move_to(&stored, &logins).await.unwrap();
    // Deleted by hand, which raises no floor: a carrier creates the table again.
    world.client.delete_table("Logins20140801").await.unwrap();

    let is_arrival = |one: &entable::Operation| one.row().row_key().starts_with("~e4_");
    let builder = || Client::builder().clock(world.clock.clone());
    let refused = Error::new(ErrorKind::Invalid, "the target is full");
    let refusing = Hooked::before(world.recorder.clone(), is_arrival, async {}).failing(refused);
    let worker = builder().backend(refusing).build().unwrap().worker().with::<Login>();
    let (clock, other) = (world.clock.clone(), worker.clone());
    // Right before the first carrier inserts the entity, its lease ends, and a second one gives the move up.
    let slow = Hooked::before(world.recorder.clone(), is_arrival, async move {
        clock.advance(A_LEASE + Duration::from_secs(1));
        other.drain().await.unwrap();
    });
    let slow = builder().backend(slow).build().unwrap().worker().with::<Login>();
    slow.drain().await.unwrap();

    assert_eq!(worker.poisoned().await.unwrap().len(), 1);
    let point = |at| Login::primary().user("don").at(at);
    assert!(logins.get(point(stored.at)).await.unwrap().is_none(), "it has arrived");
    assert!(logins.get(point(there)).await.unwrap().is_some());
    logins.insert_or_replace(&Login { user: "don".into(), at: there }).await.unwrap();
    for _ in 0..2 {
        world.later(OutboxOptions::WRITE_DEADLINE);
        worker.drain().await.unwrap();
    }
    assert_eq!(world.rows("Logins20140801", "don").await, [""; 0], "the tombstone is gone");
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_is_sent_within_the_write_deadline() {
    let (world, current, archive) = archive_world().await;
    let stored = current.insert(&employee(456)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    current.move_to(&stored, &archive).await.unwrap();
    // The target is taken, so that the move is given up.
    let rows = world.client.dynamic("Archive");
    rows.insert(&DynamicEntity::new("Sales", "empid_000456")).await.unwrap();
    let (store, kept) = Hooked::holding(world.recorder.clone(), is_tombstone);
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let worker = client.worker().with::<Employee>();
    let drained = tokio::time::timeout(Duration::from_millis(200), worker.drain()).await;
    assert!(drained.is_err(), "the request waits: {drained:?}");
    let batch = kept.lock().unwrap().take().unwrap();
    assert!(batch.check_deadline().is_ok());
    world.later(OutboxOptions::WRITE_DEADLINE);
    assert!(batch.check_deadline().is_err_and(|error| error.is_contended()));
}
