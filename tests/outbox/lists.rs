//! Lists in other partitions and tables.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{Fault, Recorder},
    },
    object_store::{GetOptions, ObjectStore, local::LocalFileSystem, memory::InMemory},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "lastname_{last_name}", row_key = "ids"),
    list(ByCity, table = "StaffByCity", partition_key = "{city}", row_key = "ids")
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
        let fault = Fault::around(recorder.clone());
        let builder = Client::builder().backend(fault).clock(clock.clone());
        let client = builder.outbox(options).seed(7).build().unwrap();
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
    assert_eq!(world.rows("StaffByCity", "Bern").await, ["ids"]);
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
    world.later(OutboxOptions::FLIGHT);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.waiting), (0, 0));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Crew",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "everywhere", row_key = "name_{last_name}", in_blob),
    list(ByRole, row_key = "role_{role}", in_blob)
)]
struct Sailor {
    department: String,
    id: u32,
    last_name: String,
    role: String,
}

fn sailor(department: &str, id: u32, last_name: &str) -> Sailor {
    let (department, last_name) = (department.to_owned(), last_name.to_owned());
    Sailor { department, id, last_name, role: "cook".into() }
}

async fn text(store: &dyn ObjectStore, name: &str) -> String {
    let blob = store.get_opts(&name.into(), GetOptions::default()).await.unwrap();
    String::from_utf8(blob.bytes().await.unwrap().to_vec()).unwrap()
}

async fn is_kept_in(store: Arc<dyn ObjectStore>) {
    let client = Client::builder().backend(Memory::new()).blobs(store.clone()).build().unwrap();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let jones = || Sailor::by_last_name().last_name("Jones");
    assert!(crew.keys(jones()).await.unwrap().is_empty());
    for one in [sailor("Sales", 1, "Jones"), sailor("Finance", 2, "Jones")] {
        crew.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    let found = crew.query(jones()).collect().await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 1], "sorted by their keys");
    let lines = text(&*store, "crew/everywhere/name_!jones.jsonl").await;
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[1..], [r#"["Finance","empid_000002"]"#, r#"["Sales","empid_000001"]"#]);
    assert!(lines[0].starts_with(r#"{"EntityType":"entable.list","Format":1,"Table":"crew","PartitionKey":"everywhere","RowKey":"name_Jones","Beat":""#), "{}", lines[0]);
    let cooks = crew.keys(Sailor::by_role().department("Sales").role("cook")).await.unwrap();
    assert_eq!(cooks.len(), 1);
    for one in found {
        crew.delete(&one).await.unwrap();
        client.wait_for_copies().await;
    }
    assert!(crew.keys(jones()).await.unwrap().is_empty());
    let lines = text(&*store, "crew/everywhere/name_!jones.jsonl").await;
    assert_eq!(lines.lines().count(), 1, "an emptied list stays, as an empty one");
    let worker = client.worker();
    let done = worker.drain().await.unwrap();
    assert_eq!(
        (done.open, done.waiting),
        (0, 0),
        "a blob that is never deleted needs no second look"
    );
}

#[tokio::test]
async fn lists_are_kept_in_blobs_under_versions() {
    is_kept_in(Arc::new(InMemory::new())).await;
}

#[tokio::test]
async fn lists_are_kept_in_a_directory_beside_tables_of_one_process() {
    let directory = tempfile::tempdir().unwrap();
    is_kept_in(Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap())).await;
}

#[tokio::test]
async fn a_client_without_blobs_refuses_before_it_writes() {
    let client = Client::memory();
    let crew = client.table::<Sailor>();
    crew.create().await.unwrap();
    let error = crew.insert(&sailor("Sales", 1, "Jones")).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("blobs(..)"), "{error}");
    assert!(crew.query(Sailor::scan()).collect().await.unwrap().is_empty());
    let error = crew.keys(Sailor::by_last_name().last_name("Jones")).await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}
