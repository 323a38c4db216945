//! Tests lists in other partitions and tables.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, Recorder},
    },
    maintain::{Finding, FindingKind},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "lastname_{last_name}", row_key = "ids"),
    list(ByCity, table = "StaffByCity", partition_key = "{city}", row_key = "all")
)]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    age: i32,
}

fn clerk(department: &str, id: u32, last_name: &str) -> Clerk {
    let (department, last_name) = (department.to_owned(), last_name.to_owned());
    Clerk { department, id, last_name, city: "Bern".into(), age: 34 }
}

struct World {
    clock: Arc<SteppedClock>,
    recorder: Recorder,
    client: Client,
    staff: Table<Clerk>,
}

impl World {
    async fn new() -> Self {
        Self::with(OutboxOptions::default()).await
    }

    async fn with(options: OutboxOptions) -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let recorder = Recorder::around(Memory::with_clock(clock.clone()));
        let fault = FaultInjector::around(recorder.clone());
        let builder = Client::builder().backend(fault).clock(clock.clone());
        let client = builder.outbox(options.copies_before_answer(false)).seed(7).build().unwrap();
        let staff = client.table::<Clerk>();
        staff.create().await.unwrap();
        recorder.clear();
        Self { clock, recorder, client, staff }
    }

    fn later(&self, time: Duration) {
        self.clock.advance(time + Duration::from_secs(1));
    }

    fn requests(&self) -> Vec<String> {
        self.recorder.take().iter().map(ToString::to_string).collect()
    }

    async fn named(&self, last_name: &str) -> Vec<(String, String)> {
        let keys = self.staff.keys(Clerk::by_last_name().last_name(last_name)).await.unwrap();
        keys.iter().map(|at| (at.partition_key().to_owned(), at.row_key().to_owned())).collect()
    }

    async fn rows(&self, table: &str, partition_key: &str) -> Vec<String> {
        let rows = self.client.dynamic(table).query(Keys::partition(partition_key));
        rows.collect().await.unwrap().iter().map(|row| row.row_key().to_owned()).collect()
    }
}

fn key(department: &str, id: u32) -> (String, String) {
    (department.to_owned(), format!("empid_{id:06}"))
}

#[tokio::test]
async fn a_list_elsewhere_has_entities_of_all_partitions() {
    let world = World::new().await;
    for one in [clerk("Sales", 152, "Jones"), clerk("Finance", 7, "Jones")] {
        world.staff.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    assert_eq!(world.named("Jones").await, [key("Sales", 152), key("Finance", 7)]);
    let row = world.client.dynamic("Staff").get("lastname_Jones", "ids").await.unwrap().unwrap();
    assert_eq!(
        row.str("Ids00").unwrap(),
        r#"[["Sales","empid_000152"],["Finance","empid_000007"]]"#
    );
    assert_eq!(row.str("EntityType").unwrap(), "entable.list");
    let found =
        world.staff.query(Clerk::by_last_name().last_name("Jones")).collect().await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [152, 7]);
    let found = world.staff.query(Clerk::by_city().city("Bern")).collect().await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(world.rows("StaffByCity", "Bern").await, ["all"]);
}

#[tokio::test]
async fn renames_and_deletes_are_followed_and_confirmed_later() {
    let world = World::new().await;
    let mut jones = world.staff.insert(&clerk("Sales", 1, "Jones")).await.unwrap();
    jones.wait_for_copies().await.unwrap();
    jones.last_name = "Hall".into();
    let hall = world.staff.replace(&jones).await.unwrap();
    hall.wait_for_copies().await.unwrap();
    assert_eq!(world.named("Jones").await, []);
    assert_eq!(world.rows("Staff", "lastname_Jones").await, [""; 0], "an emptied list is deleted");
    assert_eq!(world.named("Hall").await, [key("Sales", 1)]);
    assert!(world.rows("Staff", "Sales").await.contains(&"~e2_empid_000001".to_owned()));
    world.staff.delete(&hall).await.unwrap();
    world.client.wait_for_copies().await;
    assert_eq!(world.named("Hall").await, []);
    let worker = world.client.worker();
    world.later(OutboxOptions::WRITE_DEADLINE);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.waiting), (0, 0));
}

#[tokio::test]
async fn a_worker_writes_one_list_once_for_all_changes_of_a_partition() {
    let world = World::with(OutboxOptions::default().background(0)).await;
    for id in 0..40 {
        world.staff.insert(&clerk("Sales", id, "Jones")).await.unwrap();
    }
    world.requests();
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.applied), (0, 40));
    let requests = world.requests();
    let lists = |what: &str| requests.iter().filter(|request| request.starts_with(what)).count();
    assert_eq!(lists("apply Staff lastname_Jones"), 1, "{requests:#?}");
    assert_eq!(lists("apply StaffByCity Bern"), 1);
    assert_eq!(world.named("Jones").await.len(), 40);
}

#[tokio::test]
async fn writers_of_one_client_that_meet_at_a_list_all_get_into_it() {
    let world = World::new().await;
    let writers = (0..30).map(|id| {
        let staff = world.staff.clone();
        async move {
            let stored = staff.insert(&clerk(&format!("D{}", id % 5), id, "Jones")).await.unwrap();
            stored.wait_for_copies().await
        }
    });
    let done = futures_util::future::join_all(writers).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(world.named("Jones").await.len(), 30);
}

#[tokio::test]
async fn bulk_writes_and_row_keys_that_change_are_followed() {
    let world = World::new().await;
    let all: Vec<Clerk> =
        (0..120).map(|id| clerk(["Sales", "Law"][id % 2], id as u32, "Jones")).collect();
    world.staff.bulk().insert_all(&all).await.unwrap().into_result().unwrap();
    world.client.wait_for_copies().await;
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.named("Jones").await.len(), 120);
    let mut one =
        world.staff.get(Clerk::primary().department("Sales").id(0)).await.unwrap().unwrap();
    one.id = 999;
    world.staff.replace(&one).await.unwrap().wait_for_copies().await.unwrap();
    let named = world.named("Jones").await;
    assert!(named.contains(&key("Sales", 999)) && !named.contains(&key("Sales", 0)));
    assert_eq!(named.len(), 120);
}

#[tokio::test]
async fn a_moved_entity_is_in_the_list_from_its_new_place() {
    let world = World::new().await;
    let mut one = world.staff.insert(&clerk("Sales", 1, "Jones")).await.unwrap();
    one.wait_for_copies().await.unwrap();
    one.department = "Law".into();
    world.staff.move_to(&one, &world.staff).await.unwrap().wait().await.unwrap();
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    assert_eq!(world.named("Jones").await, [key("Law", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_over_old_data_is_rebuilt() {
    /// The entity of these rows before the lists were declared.
    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Clerk"
    )]
    struct Old {
        department: String,
        id: u32,
        last_name: String,
        city: String,
        age: i32,
    }
    let world = World::new().await;
    let old = world.client.table::<Old>();
    for id in 0..3 {
        let Clerk { department, id, last_name, city, age } = clerk("Sales", id, "Jones");
        old.insert(&Old { department, id, last_name, city, age }).await.unwrap();
    }
    assert!(world.named("Jones").await.is_empty());
    let report = world.staff.rebuild(Clerk::by_last_name()).await.unwrap();
    assert_eq!(report.written, 3);
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.named("Jones").await.len(), 3);
    // The other list is still to be rebuilt, and a check says so.
    let report = world.staff.check().await.unwrap();
    let missing =
        |finding: &Finding| (finding.kind, finding.index) == (FindingKind::Missing, "ByCity");
    assert!(report.findings.len() == 3 && report.findings.iter().all(missing), "{report:?}");
    assert_eq!(world.staff.rebuild(Clerk::by_city()).await.unwrap().written, 3);
    world.client.worker().drain().await.unwrap();
    assert!(world.staff.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_list_with_a_table_of_its_own_serves_entities_of_several_tables() {
    let world = World::new().await;
    let archive = world.client.table_named::<Clerk>("Archive");
    archive.create().await.unwrap();
    world.staff.insert(&clerk("Sales", 1, "Jones")).await.unwrap().wait_for_copies().await.unwrap();
    let old = archive.insert(&clerk("Sales", 1, "Jones")).await.unwrap();
    old.wait_for_copies().await.unwrap();
    let row = world.client.dynamic("StaffByCity").get("Bern", "all").await.unwrap().unwrap();
    let ids = r#"[["Sales","empid_000001"],["Sales","empid_000001","archive"]]"#;
    assert_eq!(row.str("Ids00").unwrap(), ids);
    let bern = || Clerk::by_city().city("Bern");
    assert_eq!(archive.keys(bern()).await.unwrap().len(), 1);
    archive.delete(&old).await.unwrap();
    world.client.wait_for_copies().await;
    assert!(archive.keys(bern()).await.unwrap().is_empty());
    assert_eq!(world.staff.query(bern()).collect().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_program_that_does_not_know_the_list_leaves_the_work_alone() {
    let world = World::with(OutboxOptions::default().background(0)).await;
    world.staff.insert(&clerk("Sales", 1, "Jones")).await.unwrap();
    let other = Client::builder().backend(world.recorder.clone()).clock(world.clock.clone());
    let stats = other.build().unwrap().worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.poisoned), (1, 0));
    assert_eq!(world.client.worker().drain().await.unwrap().open, 0);
    assert_eq!(world.named("Jones").await.len(), 1);
}
