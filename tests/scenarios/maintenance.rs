//! Scenarios of checks, repairs and rebuilds.

use std::time::Duration;

use entable::{Condition, OutboxOptions, Verb, maintain::FindingKind};

use super::{
    client_of,
    plans::{Desk, desk, desks, with_phone},
};
use crate::{
    fixture::{Employee, World, employee},
    hooked::Hooked,
};

/// A repair of more suspects of one partition than a transaction has room for repairs all of them.
#[tokio::test(start_paused = true)]
async fn a_repair_of_many_suspects_repairs_all() {
    const SUSPECTS: u32 = 150;
    let world = World::new().await;
    let client = client_of(&world, world.fault.clone(), OutboxOptions::default());
    let staff = client.table::<Employee>();
    for id in 1..=SUSPECTS {
        staff.insert(&employee(id)).await.unwrap().wait_for_copies().await.unwrap();
        let copy = (format!("email_jones{id}@contoso.com"), format!("at_Sales_{id:06}"));
        client.dynamic("Staff").delete(&copy.0, &copy.1, Condition::Any).await.unwrap();
    }
    let report = staff.check().await.unwrap();
    assert_eq!(report.findings.len(), 150);
    report.repair().await.unwrap();
    world.client.worker().drain().await.unwrap();
    let mut missing = 0;
    for id in 1..=SUSPECTS {
        let rows = world.rows("Staff", &format!("email_jones{id}@contoso.com")).await;
        missing += u32::from(rows.is_empty());
    }
    assert_eq!(missing, 0, "{missing} copies are still missing");
}

/// A suspect that changes while a check waits for its second reading is no finding.
#[tokio::test(start_paused = true)]
async fn a_suspect_that_changes_is_no_finding() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let names = world.client.dynamic("StaffByName");
    let age = async |age: i32| {
        let mut copy = names.get("Jones", "name_Sales_00000001").await.unwrap().unwrap();
        copy.set("Age", age);
        names.replace(&copy).await.unwrap();
    };
    age(99).await;
    let client = client_of(&world, world.fault.clone(), OutboxOptions::default());
    let staff = client.table::<Employee>();
    let check = tokio::spawn(async move { staff.check().await.unwrap() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    age(98).await;
    let report = check.await.unwrap();
    assert_eq!(report.progress.suspects, 1);
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// A copy that its entity's writer changes while it is repaired keeps what the writer wrote.
#[tokio::test(start_paused = true)]
async fn a_repair_leaves_what_a_writer_changed() {
    let world = World::new().await;
    let direct = desks(&world).await;
    let mut one = direct.insert(&desk(1, "11")).await.unwrap();
    let rows = world.client.dynamic("Desks");
    let mut copy = rows.get("Kiel", "phone_11").await.unwrap().unwrap();
    copy.set("Note", "damaged");
    rows.replace(&copy).await.unwrap();
    let is_repair = |one: &entable::Operation| one.row().row_key() == "phone_11";
    let writer = direct.clone();
    let store = Hooked::before(world.fault.clone(), is_repair, async move {
        one.note = "second".into();
        writer.replace(&one).await.unwrap();
    });
    let client = client_of(&world, store, OutboxOptions::default());
    let report = client.table::<Desk>().check().await.unwrap();
    assert_eq!(report.findings.first().map(|finding| finding.kind), Some(FindingKind::Stale));
    report.repair().await.unwrap();
    let note = with_phone(&direct, "11").await.unwrap().note.clone();
    assert!(note == "second", "the copy says {note}");
}

/// A rebuild makes no copy for a version of an entity that is gone by then.
#[tokio::test(start_paused = true)]
async fn a_rebuild_holds_entities_to_their_version() {
    let world = World::new().await;
    let direct = desks(&world).await;
    let mut one = direct.insert(&desk(1, "11")).await.unwrap();
    let rows = world.client.dynamic("Desks");
    rows.delete("Kiel", "phone_11", Condition::Any).await.unwrap();
    let is_rebuilt =
        |one: &entable::Operation| one.row().row_key() == "phone_11" && one.verb() == Verb::Insert;
    let writer = direct.clone();
    let store = Hooked::before(world.fault.clone(), is_rebuilt, async move {
        one.phone = "12".into();
        writer.replace(&one).await.unwrap();
    });
    let client = client_of(&world, store, OutboxOptions::default());
    client.table::<Desk>().rebuild(Desk::by_phone()).await.unwrap();
    assert!(with_phone(&direct, "12").await.is_some());
    let old = rows.get("Kiel", "phone_11").await.unwrap();
    assert!(old.is_none(), "a copy under the old key is there");
}
