//! Tests checks of remote lists.

use std::sync::Arc;

use entable::{
    Condition, OutboxOptions, SteppedClock, Ticks, backend::Memory, maintain::FindingKind,
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, partition_key = "lastname_{last_name}", row_key = "ids"),
    list(ByCity, table = "StaffByCity", partition_key = "{city}", row_key = "ids"),
    list(ByTeam, row_key = "team_{team}")
)]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    team: String,
}

fn clerk(department: &str, id: u32) -> Clerk {
    Clerk {
        department: department.to_owned(),
        id,
        last_name: "Jones".into(),
        city: "Bern".into(),
        team: "red".into(),
    }
}

struct World {
    clock: Arc<SteppedClock>,
    client: Client,
    staff: Table<Clerk>,
}

type Reported = (FindingKind, &'static str, String, Option<String>, Option<String>);

impl World {
    async fn new() -> Self {
        let clock = Arc::new(SteppedClock::new(Ticks::new(630_000_000_000_000_000).unwrap()));
        let store = Memory::with_clock(clock.clone());
        let client = Client::builder().backend(store).clock(clock.clone()).build().unwrap();
        let staff = client.table::<Clerk>();
        staff.create().await.unwrap();
        for one in [clerk("Sales", 1), clerk("Sales", 2), clerk("Finance", 3)] {
            staff.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
        }
        Self { clock, client, staff }
    }

    async fn reported(&self) -> Vec<Reported> {
        let report = self.staff.check().await.unwrap();
        let findings = report.findings.into_iter();
        let mut reported: Vec<Reported> = findings
            .map(|f| (f.kind, f.index, f.partition_key, f.primary_partition_key, f.primary))
            .collect();
        reported.sort_by(|a, b| (a.1, &a.2, &a.4).cmp(&(b.1, &b.2, &b.4)));
        reported
    }

    async fn set(&self, table: &str, partition_key: &str, ids: &str) {
        let rows = self.client.dynamic(table);
        let mut list = rows.get(partition_key, "ids").await.unwrap().unwrap();
        list.set("Ids00", ids);
        rows.replace(&list).await.unwrap();
    }

    async fn recover(&self) {
        let worker = self.client.worker();
        for _ in 0..3 {
            worker.drain().await.unwrap();
            self.clock.advance(OutboxOptions::WRITE_DEADLINE * 2);
        }
        let stats = worker.drain().await.unwrap();
        assert_eq!((stats.open, stats.waiting, stats.poisoned), (0, 0, 0));
    }
}

fn reported(
    kind: FindingKind,
    index: &'static str,
    list: &str,
    department: &str,
    id: u32,
) -> Reported {
    (kind, index, list.into(), Some(department.into()), Some(format!("empid_{id:06}")))
}

#[tokio::test(start_paused = true)]
async fn entries_are_compared_and_mended() {
    let world = World::new().await;
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean() && report.progress.suspects == 0, "{report:?}");
    // One is missing, one there twice, one nobody's.
    let ids = r#"[["Sales","empid_000001"],["Sales","empid_000001"],["Sales","empid_000009"],["Finance","empid_000003"]]"#;
    world.set("Staff", "lastname_Jones", ids).await;
    let rows = world.client.dynamic("StaffByCity");
    rows.delete("Bern", "ids", Condition::Any).await.unwrap();
    let expected = [
        reported(FindingKind::Missing, "ByCity", "Bern", "Sales", 1),
        reported(FindingKind::Missing, "ByCity", "Bern", "Sales", 2),
        reported(FindingKind::Missing, "ByCity", "Bern", "Finance", 3),
        reported(FindingKind::Stale, "ByLastName", "lastname_Jones", "Sales", 1),
        reported(FindingKind::Missing, "ByLastName", "lastname_Jones", "Sales", 2),
        reported(FindingKind::Orphan, "ByLastName", "lastname_Jones", "Sales", 9),
    ];
    assert_eq!(world.reported().await, expected);
    assert_eq!(world.staff.check().repair().await.unwrap(), 6);
    // The recorded repairs are open work.
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean() && report.progress.pending > 0, "{report:?}");
    world.recover().await;
    assert!(world.reported().await.is_empty());
    for path in [Clerk::by_last_name().last_name("Jones")] {
        assert_eq!(world.staff.keys(path).await.unwrap().len(), 3);
    }
    assert_eq!(world.staff.keys(Clerk::by_city().city("Bern")).await.unwrap().len(), 3);
}

/// A list that is written all the time is no reason to overlook what is missing in it.
#[tokio::test(start_paused = true)]
async fn other_entries_may_come_meanwhile() {
    let world = World::new().await;
    world
        .set("Staff", "lastname_Jones", r#"[["Sales","empid_000001"],["Finance","empid_000003"]]"#)
        .await;
    let staff = world.staff.clone();
    let check = tokio::spawn(async move { staff.check().await.unwrap() });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.staff.insert(&clerk("Sales", 4)).await.unwrap().wait_for_copies().await.unwrap();
    let findings = check.await.unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].primary.as_deref(), Some("empid_000002"));
}

#[tokio::test(start_paused = true)]
async fn lists_of_either_kind_are_told_apart() {
    let world = World::new().await;
    let rows = world.client.dynamic("Staff");
    rows.delete("Sales", "team_red", Condition::Any).await.unwrap();
    let expected = [
        reported(FindingKind::Missing, "ByTeam", "Sales", "Sales", 1),
        reported(FindingKind::Missing, "ByTeam", "Sales", "Sales", 2),
    ];
    assert_eq!(world.reported().await, expected);
    assert_eq!(world.staff.check().repair().await.unwrap(), 2);
    assert!(world.reported().await.is_empty());
}

/// A list that cannot be read lacks all that entities derive; the check goes on behind it.
#[tokio::test(start_paused = true)]
async fn a_damaged_list_ends_no_check() {
    let world = World::new().await;
    world.set("Staff", "lastname_Jones", "no JSON").await;
    let rows = world.client.dynamic("Staff");
    let mut local = rows.get("Sales", "team_red").await.unwrap().unwrap();
    local.set("Ids00", "no JSON");
    rows.replace(&local).await.unwrap();
    world.set("StaffByCity", "Bern", "[]").await;
    let reported = world.reported().await;
    let count = |index: &str| {
        let of_index = reported.iter().filter(|one| one.1 == index);
        of_index.filter(|one| one.0 == FindingKind::Missing).count()
    };
    assert_eq!((count("ByLastName"), count("ByCity"), count("ByTeam")), (3, 3, 2));
    assert_eq!(reported.len(), 8, "{reported:?}");
    // A repair mends what can be read, and leaves the damaged lists.
    world.staff.check().repair().await.unwrap();
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.staff.keys(Clerk::by_city().city("Bern")).await.unwrap().len(), 3);
    let list = rows.get("Sales", "team_red").await.unwrap().unwrap();
    assert_eq!(list.str("Ids00").unwrap(), "no JSON");
}
