//! Lists in other partitions and tables.

use std::{sync::Arc, time::Duration};

use entable::{
    OutboxOptions, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{Fault, Recorder},
    },
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
