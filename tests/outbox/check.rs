//! Tests checks of remote copies, and repairs that workers finish. The write deadline that a check
//! waits for takes no real time here.

use std::time::Duration;

use entable::{Condition, OutboxOptions, maintain::FindingKind, prelude::*};

use crate::fixture::{Employee, World, employee};

async fn filled() -> World {
    let world = World::new().await;
    for id in 1..=5 {
        world.staff.insert(&employee(id)).await.unwrap().wait_for_copies().await.unwrap();
    }
    world
}

fn email(id: u32) -> (String, String) {
    (format!("email_jones{id}@contoso.com"), format!("at_Sales_{id:06}"))
}

/// A copy that is missing, one that is stale, one without a primary; in either table.
async fn damage(world: &World) {
    let staff = world.client.dynamic("Staff");
    let names = world.client.dynamic("StaffByName");
    let (partition, row) = email(1);
    staff.delete(&partition, &row, Condition::Any).await.unwrap();
    names.delete("Jones", "name_Sales_00000002", Condition::Any).await.unwrap();
    let (partition, row) = email(3);
    let mut stale = staff.get(&partition, &row).await.unwrap().unwrap();
    stale.set("Age", 99);
    staff.replace(&stale).await.unwrap();
    let mut stale = names.get("Jones", "name_Sales_00000004").await.unwrap().unwrap();
    stale.set("Age", 99);
    names.replace(&stale).await.unwrap();
    let orphan = DynamicEntity::new("email_nobody@contoso.com", "at_Sales_000009")
        .with_framework_names()
        .with("EntityType", "Employee#ByEmail")
        .with("Src", "W/\"1\"");
    staff.insert_or_replace(&orphan).await.unwrap();
    let orphan = DynamicEntity::new("Smith", "name_Sales_00000005")
        .with_framework_names()
        .with("EntityType", "Employee#ByName")
        .with("Src", "W/\"1\"")
        .with("SrcP", "Sales")
        .with("SrcR", "empid_000005")
        .with("SrcT", "Staff")
        .with("Age", 1);
    names.insert_or_replace(&orphan).await.unwrap();
}

type Reported = (FindingKind, &'static str, String, String, Option<String>);

async fn reported(world: &World) -> Vec<Reported> {
    let report = world.staff.check().await.unwrap();
    let findings = report.findings.into_iter();
    let mut reported: Vec<_> =
        findings.map(|f| (f.kind, f.index, f.partition_key, f.row_key, f.primary)).collect();
    reported.sort_by(|a, b| (a.1, &a.2, &a.3).cmp(&(b.1, &b.2, &b.3)));
    reported
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_stale_or_nobodys_is_found() {
    let world = filled().await;
    assert!(reported(&world).await.is_empty());
    damage(&world).await;
    let primary = |id: u32| Some(format!("empid_{id:06}"));
    let reported = reported(&world).await;
    let expected = [
        (FindingKind::Missing, "ByEmail", email(1).0, email(1).1, primary(1)),
        (FindingKind::Stale, "ByEmail", email(3).0, email(3).1, primary(3)),
        (
            FindingKind::Orphan,
            "ByEmail",
            "email_nobody@contoso.com".into(),
            "at_Sales_000009".into(),
            primary(9),
        ),
        (FindingKind::Missing, "ByName", "Jones".into(), "name_Sales_00000002".into(), primary(2)),
        (FindingKind::Stale, "ByName", "Jones".into(), "name_Sales_00000004".into(), primary(4)),
        (FindingKind::Orphan, "ByName", "Smith".into(), "name_Sales_00000005".into(), primary(5)),
    ];
    assert_eq!(reported, expected);
}

#[tokio::test(start_paused = true)]
async fn a_check_of_what_matches_is_one_scan_of_each_table() {
    let world = filled().await;
    world.requests();
    let before = tokio::time::Instant::now();
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean());
    assert_eq!((report.progress.rows, report.progress.primaries), (16, 5));
    assert_eq!(world.requests().len(), 2);
    assert_eq!(before.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_repair_records_and_workers_mend() {
    let world = filled().await;
    damage(&world).await;
    let report = world.staff.check().await.unwrap();
    world.requests();
    assert_eq!(report.repair().await.unwrap(), 6);
    let requests = world.requests();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    assert!(requests[0].starts_with("apply Staff Sales: InsertOrMerge ~e2_empid_000001"));
    assert!(requests[0].contains(" Merge ~e0_"), "{requests:#?}");
    // Open work is no finding.
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean() && report.progress.pending > 0, "{report:?}");
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    world.later(OutboxOptions::WRITE_DEADLINE);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.waiting, stats.poisoned), (0, 0, 0));
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.progress.pending, report.progress.suspects), (0, 0));
    let by_email = Employee::by_email().email("jones3@contoso.com").department("Sales").id(3);
    assert_eq!(world.staff.get(by_email).await.unwrap().unwrap().age, 34);
    assert!(world.rows("StaffByName", "Smith").await.is_empty());
    assert!(world.rows("Staff", "email_nobody@contoso.com").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_repair_under_a_closed_registration_registers_again() {
    let world = filled().await;
    damage(&world).await;
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    // Another process closes the writer's registration.
    world.other_client().worker().with::<Employee>().drain().await.unwrap();
    assert_eq!(world.markers().await, 0);
    assert_eq!(world.staff.check().repair().await.unwrap(), 6);
    assert_eq!(world.markers().await, 1);
    world.other_client().worker().with::<Employee>().drain().await.unwrap();
    assert!(reported(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn open_work_is_pending_and_no_finding() {
    let world = World::left_to_workers().await;
    for id in 1..=3 {
        world.staff.insert(&employee(id)).await.unwrap();
    }
    let before = tokio::time::Instant::now();
    let report = world.staff.check().await.unwrap();
    assert!(report.is_clean());
    assert_eq!((report.progress.pending, report.progress.suspects), (6, 0));
    assert_eq!(before.elapsed(), Duration::ZERO, "nothing was waited for");
}

/// A mismatch that changes while a check waits is not reported: in the copy, the primary, or open work.
#[tokio::test(start_paused = true)]
async fn what_does_not_stand_still_is_not_reported() {
    let world = filled().await;
    damage(&world).await;
    let staff = world.staff.clone();
    let check = tokio::spawn(async move { staff.check().await.unwrap() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A copy that comes late, one that is written once more, a primary that changes.
    let rows = world.client.dynamic("Staff");
    let copy = rows.get(&email(2).0, &email(2).1).await.unwrap().unwrap();
    let mut late = DynamicEntity::new(&email(1).0, &email(1).1).with_framework_names();
    for (name, value) in copy.properties().clone() {
        late.set(name, value);
    }
    rows.insert_or_replace(&late).await.unwrap();
    let mut again = rows.get(&email(3).0, &email(3).1).await.unwrap().unwrap();
    again.set("Age", 98);
    rows.replace(&again).await.unwrap();
    let mut touched = rows.get("Sales", "empid_000002").await.unwrap().unwrap();
    touched.set("Visits", 0_i64);
    rows.patch(&touched).await.unwrap();
    let report = check.await.unwrap();
    let mut found: Vec<_> = report.findings.iter().map(|f| (f.index, f.kind)).collect();
    found.sort_by_key(|(index, kind)| (*index, format!("{kind:?}")));
    let rest = [
        ("ByEmail", FindingKind::Orphan),
        ("ByName", FindingKind::Orphan),
        ("ByName", FindingKind::Stale),
    ];
    assert_eq!(found, rest);
    assert_eq!(report.progress.suspects, 6);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_does_not_wait_counts_and_reports_nothing() {
    let world = filled().await;
    damage(&world).await;
    let before = tokio::time::Instant::now();
    let report = world.staff.check().without_waiting().await.unwrap();
    assert!(report.is_clean());
    assert_eq!(report.progress.suspects, 6);
    assert_eq!(world.staff.check().without_waiting().repair().await.unwrap(), 0);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_check_waits_for_a_whole_flight() {
    let world = filled().await;
    damage(&world).await;
    let before = tokio::time::Instant::now();
    assert_eq!(world.staff.check().await.unwrap().findings.len(), 6);
    assert!(before.elapsed() >= OutboxOptions::WRITE_DEADLINE);
    assert!(before.elapsed() < OutboxOptions::WRITE_DEADLINE * 2, "all suspects wait together");
}

#[tokio::test(start_paused = true)]
async fn little_memory_finds_the_same() {
    let world = filled().await;
    damage(&world).await;
    for unmatched in [1, 2, 3, 7] {
        let report = world.staff.check().max_unmatched_rows(unmatched).await.unwrap();
        assert_eq!(report.findings.len(), 6, "{unmatched} at a time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_another_row_took_is_contested_and_left() {
    let world = filled().await;
    let names = world.client.dynamic("StaffByName");
    let mut taken = names.get("Jones", "name_Sales_00000002").await.unwrap().unwrap();
    taken.allow_framework_names();
    taken.set("SrcR", "empid_000777");
    names.replace(&taken).await.unwrap();
    let reported = reported(&world).await;
    let key = ("Jones".to_owned(), "name_Sales_00000002".to_owned());
    let primary = |id: u32| Some(format!("empid_{id:06}"));
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported.contains(&(
        FindingKind::Contested,
        "ByName",
        key.0.clone(),
        key.1.clone(),
        primary(2)
    )));
    assert!(reported.contains(&(FindingKind::Orphan, "ByName", key.0, key.1, primary(777))));
    // The orphan goes first, and what is missing then comes with the next repair.
    assert_eq!(world.staff.check().repair().await.unwrap(), 1);
    world.client.worker().drain().await.unwrap();
    assert_eq!(world.staff.check().repair().await.unwrap(), 1);
    world.client.worker().drain().await.unwrap();
    assert!(self::reported(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_table_of_copies_is_all_missing() {
    let world = filled().await;
    world.client.delete_table("StaffByName").await.unwrap();
    let report = world.staff.check().await.unwrap();
    assert_eq!(report.findings.len(), 5);
    assert!(report.findings.iter().all(|f| f.kind == FindingKind::Missing && f.is_remote()));
    world.client.create_table("StaffByName").await.unwrap();
    assert_eq!(report.repair().await.unwrap(), 5);
    world.client.worker().drain().await.unwrap();
    assert!(reported(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn copies_of_another_table_are_not_ones_own() {
    let world = filled().await;
    let archive = world.client.table_named::<Employee>("Archive");
    archive.create_if_not_exists().await.unwrap();
    let one = Employee { department: "Old".into(), ..employee(7) };
    archive.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.rows("StaffByName", "Jones").await.len(), 6);
    assert!(reported(&world).await.is_empty());
    let report = archive.check().await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    // Each finds its own.
    let names = world.client.dynamic("StaffByName");
    names.delete("Jones", "name_Old_00000007", Condition::Any).await.unwrap();
    assert!(reported(&world).await.is_empty());
    assert_eq!(archive.check().await.unwrap().findings.len(), 1);
    assert_eq!(archive.check().repair().await.unwrap(), 1);
    world.client.worker().drain().await.unwrap();
    assert!(archive.check().await.unwrap().is_clean());
}
