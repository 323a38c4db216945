//! Tests checks of remote copies that not every primary has, that older programs wrote, or whose
//! primaries move.

use std::sync::Arc;

use entable::{
    Condition, OutboxOptions, SteppedClock, Ticks, backend::Memory, maintain::FindingKind,
    prelude::*,
};

mod old {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Worker",
        index(ByTown, table = "Towns", partition_key = "{town}", row_key = "{department}_{id:06}")
    )]
    pub struct WorkerV1 {
        pub department: String,
        pub id: u32,
        pub town: String,
        pub age: String,
    }
}

use old::WorkerV1;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 2,
    upgrade_from(WorkerV1),
    index(ByTown, table = "Towns", partition_key = "{town}", row_key = "{department}_{id:06}"),
    index(
        Adults,
        partition_key = "adults_{age}",
        row_key = "at_{department}_{id:06}",
        when = is_adult
    )
)]
struct Worker {
    department: String,
    id: u32,
    town: String,
    age: i32,
}

fn is_adult(worker: &Worker) -> bool {
    worker.age >= 18
}

impl TryFrom<WorkerV1> for Worker {
    type Error = std::num::ParseIntError;

    fn try_from(old: WorkerV1) -> Result<Self, Self::Error> {
        let WorkerV1 { department, id, town, age } = old;
        Ok(Self { department, id, town, age: age.parse()? })
    }
}

fn worker(id: u32, age: i32) -> Worker {
    Worker { department: "Sales".into(), id, town: "Rome".into(), age }
}

struct World {
    clock: Arc<SteppedClock>,
    client: Client,
    staff: Table<Worker>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let store = Memory::with_clock(clock.clone());
        let client = Client::builder().backend(store).clock(clock.clone()).build().unwrap();
        let staff = client.table::<Worker>();
        staff.create().await.unwrap();
        Self { clock, client, staff }
    }

    async fn findings(&self) -> Vec<(FindingKind, &'static str, String)> {
        let report = self.staff.check().await.unwrap();
        let mut reported: Vec<_> =
            report.findings.into_iter().map(|f| (f.kind, f.index, f.row_key)).collect();
        reported.sort_by(|a, b| (a.1, &a.2).cmp(&(b.1, &b.2)));
        reported
    }

    async fn mend(&self) {
        assert!(self.staff.check().repair().await.unwrap() > 0);
        let worker = self.client.worker();
        worker.drain().await.unwrap();
        self.clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.open, stats.waiting, stats.poisoned), (0, 0, 0));
        assert!(self.findings().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_says_whether_a_copy_is_missing_or_nobodys() {
    let world = World::new().await;
    for one in [worker(1, 30), worker(2, 10)] {
        world.staff.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    assert!(world.findings().await.is_empty());
    let rows = world.client.dynamic("Staff");
    let copy = rows.get("adults_2147483678", "at_Sales_000001").await.unwrap().unwrap();
    rows.delete("adults_2147483678", "at_Sales_000001", Condition::Any).await.unwrap();
    // A child among the adults.
    let mut child =
        DynamicEntity::new("adults_2147483658", "at_Sales_000002").with_framework_names();
    for (name, value) in copy.properties().clone() {
        child.set(&name, value);
    }
    rows.insert_or_replace(&child).await.unwrap();
    let expected = [
        (FindingKind::Missing, "Adults", "at_Sales_000001".to_owned()),
        (FindingKind::Orphan, "Adults", "at_Sales_000002".to_owned()),
    ];
    assert_eq!(world.findings().await, expected);
    world.mend().await;
    assert!(rows.get("adults_2147483658", "at_Sales_000002").await.unwrap().is_none());
    assert!(rows.get("adults_2147483678", "at_Sales_000001").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn rows_of_an_older_version_are_held_to_what_that_writes() {
    let world = World::new().await;
    let older = world.client.table::<WorkerV1>();
    for id in 1..=3 {
        let one = WorkerV1 {
            department: "Sales".into(),
            id,
            town: "Rome".into(),
            age: format!("{}", 20 + id),
        };
        older.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    world.staff.insert(&worker(4, 10)).await.unwrap().wait_for_copies().await.unwrap();
    // The older version has no index of adults: none is missing.
    assert!(world.findings().await.is_empty());
    let towns = world.client.dynamic("Towns");
    towns.delete("Rome", "Sales_000001", Condition::Any).await.unwrap();
    let mut stale = towns.get("Rome", "Sales_000002").await.unwrap().unwrap();
    assert_eq!(stale.str("EntityType").unwrap(), "Worker#ByTown");
    stale.set("Age", "99");
    towns.replace(&stale).await.unwrap();
    let expected = [
        (FindingKind::Missing, "ByTown", "Sales_000001".to_owned()),
        (FindingKind::Stale, "ByTown", "Sales_000002".to_owned()),
    ];
    assert_eq!(world.findings().await, expected);
    world.mend().await;
    // Mended in the form of their version.
    for row in ["Sales_000001", "Sales_000002"] {
        let copy = towns.get("Rome", row).await.unwrap().unwrap();
        assert_eq!(copy.str("EntityType").unwrap(), "Worker#ByTown");
        assert!(copy.str("Age").unwrap().starts_with('2'));
    }
}

#[tokio::test(start_paused = true)]
async fn rows_of_a_newer_version_are_left_to_those_who_know_it() {
    let world = World::new().await;
    world.staff.insert(&worker(1, 30)).await.unwrap().wait_for_copies().await.unwrap();
    let towns = world.client.dynamic("Towns");
    towns.delete("Rome", "Sales_000001", Condition::Any).await.unwrap();
    let report = world.client.table::<WorkerV1>().check().await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(world.findings().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_row_on_its_way_is_pending_and_its_copies_follow() {
    let world = World::new().await;
    let stored = world.staff.insert(&worker(1, 30)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    let mut moved = stored.clone();
    moved.department = "Marketing".into();
    world.staff.move_to(&moved, &world.staff).await.unwrap().wait().await.unwrap();
    world.client.wait_for_copies().await;
    // Whatever is late is open work.
    assert!(world.findings().await.is_empty());
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    world.clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
    worker.drain().await.unwrap();
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean() && report.progress.pending == 0, "{report:?}");
    // A copy of where it was.
    let towns = world.client.dynamic("Towns");
    let copy = towns.get("Rome", "Marketing_000001").await.unwrap().unwrap();
    let mut left = DynamicEntity::new("Rome", "Sales_000001").with_framework_names();
    for (name, value) in copy.properties().clone() {
        left.set(&name, value);
    }
    left.set("SrcP", "Sales");
    towns.insert_or_replace(&left).await.unwrap();
    let expected = [(FindingKind::Orphan, "ByTown", "Sales_000001".to_owned())];
    assert_eq!(world.findings().await, expected);
    world.mend().await;
    assert!(towns.get("Rome", "Sales_000001").await.unwrap().is_none());
}
