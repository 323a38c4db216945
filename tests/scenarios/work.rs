//! Scenarios of the outbox's work: what workers find, what they delete, and what waits for a second look.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    OutboxOptions,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use super::{client, client_of};
use crate::{
    fixture::{Employee, World, employee},
    weak_store::WeakStore,
};

fn worker(world: &World) -> entable::Worker {
    client(world, OutboxOptions::default()).worker().with::<Employee>()
}

fn outbox_row(row_key: &str, entity_type: &str, format: i32) -> DynamicEntity {
    DynamicEntity::new("Sales", row_key)
        .with_framework_names()
        .with("EntityType", entity_type)
        .with("Format", format)
}

/// A row of a newer program keeps its partition in the directory.
#[tokio::test(start_paused = true)]
async fn unknown_work_keeps_its_registration() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let newer = outbox_row("~e2_newer", "entable.dirty", 2);
    world.client.dynamic("Staff").insert(&newer).await.unwrap();
    let worker = worker(&world);
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    worker.drain().await.unwrap();
    assert_eq!(world.markers().await, 1, "the partition left the directory");
}

/// Work behind many rows that wait for others is done.
#[tokio::test(start_paused = true)]
async fn every_chunk_is_worked_on() {
    let world = World::left_to_workers().await;
    for number in 0..10 {
        let newer = outbox_row(&format!("~e2_a{number}"), "entable.dirty", 2);
        world.client.dynamic("Staff").insert(&newer).await.unwrap();
    }
    world.staff.insert(&employee(1)).await.unwrap();
    world.fault.shorten_pages(Some(3));
    let stats = worker(&world).drain().await.unwrap();
    assert_eq!(stats.applied, 1, "{stats:?}");
}

/// Every partition that the directory names is visited.
#[tokio::test(start_paused = true)]
async fn every_page_of_the_directory_is_read() {
    let world = World::left_to_workers().await;
    for number in 0..8 {
        let one = Employee { department: format!("d{number}"), ..employee(number) };
        world.staff.insert(&one).await.unwrap();
    }
    world.fault.shorten_pages(Some(5));
    let stats = worker(&world).drain().await.unwrap();
    assert_eq!(stats.applied, 8, "{stats:?}");
}

/// Whichever write fails, work that is put aside is in its place or in the poison table.
#[tokio::test(start_paused = true)]
async fn work_on_its_way_to_the_poison_table_is_never_nowhere() {
    for at in 0..6 {
        let world = World::left_to_workers().await;
        world.staff.insert(&employee(1)).await.unwrap();
        world.client.delete_table("StaffByName").await.unwrap();
        let client = client(&world, OutboxOptions::default().poison_after(1));
        let worker = client.worker().with::<Employee>();
        let denied = Error::new(ErrorKind::Denied, "not today");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(denied));
        drop(worker.drain().await);
        let count = world.open().await.len() + worker.poisoned().await.unwrap().len();
        assert!(count > 0, "the work is lost if write {at} fails");
    }
}

/// A delayed writer could insert the copy again that this writer deleted.
#[tokio::test(start_paused = true)]
async fn a_writers_own_deletion_is_looked_at_again() {
    let world = World::new().await;
    let client = client(&world, OutboxOptions::default());
    let staff = client.table::<Employee>();
    let mut stored = staff.insert(&employee(1)).await.unwrap();
    stored.wait_for_copies().await.unwrap();
    stored.email = "other@contoso.com".to_owned();
    drop(staff.replace(&stored).await.unwrap().wait_for_copies().await);
    let old = world.rows("Staff", "email_jones1@contoso.com").await;
    assert!(old.is_empty(), "{old:?}");
    assert_eq!(world.open().await.len(), 1, "nothing is left for a second look");
}

/// Whichever registration fails, no work is committed where no worker finds it.
#[tokio::test(start_paused = true)]
async fn bulk_leaves_no_work_without_a_marker() {
    for at in 0..9 {
        let world = World::left_to_workers().await;
        let client = client(&world, OutboxOptions::default().background(0));
        client.create_table("EntableDirectory").await.unwrap();
        let denied = Error::new(ErrorKind::Denied, "not today");
        world.fault.inject(RequestKind::Apply, at, InjectedFault::Before(denied));
        let departments = || (0..3).map(|number| format!("d{number}"));
        let all = departments().map(|department| Employee { department, ..employee(1) });
        drop(client.bulk().insert_all(all).await);
        world.fault.clear();
        let markers = world.client.dynamic("EntableDirectory");
        let markers = markers.query(Filter::parse("Table ge ''").unwrap()).allow_scan();
        let markers = markers.collect().await.unwrap();
        let marked: BTreeSet<_> =
            markers.iter().map(|marker| marker.str("Partition").unwrap().to_owned()).collect();
        for department in departments() {
            let rows = world.rows("Staff", &department).await;
            let has_work = rows.iter().any(|key| key.starts_with("~e2_"));
            let is_found = !has_work || marked.contains(&department);
            assert!(is_found, "no marker for {department} if write {at} fails");
        }
    }
}

/// A rebuild beside open work keeps the names of that work.
#[tokio::test(start_paused = true)]
async fn a_rebuild_keeps_the_names_of_open_work() {
    let world = World::left_to_workers().await;
    let mut stored = world.staff.insert(&employee(1)).await.unwrap();
    world.client.worker().drain().await.unwrap();
    stored.email = "other@contoso.com".to_owned();
    world.staff.replace(&stored).await.unwrap();
    let client = client(&world, OutboxOptions::default());
    client.table::<Employee>().rebuild(Employee::by_name()).await.unwrap();
    for _ in 0..2 {
        world.client.worker().drain().await.unwrap();
        world.later(OutboxOptions::WRITE_DEADLINE);
    }
    let old = world.rows("Staff", "email_jones1@contoso.com").await;
    assert!(old.is_empty(), "the old copy stays: {old:?}");
}

/// A writer that is at work keeps its claim.
#[tokio::test(start_paused = true)]
async fn a_young_claim_stays_alive() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let claim = outbox_row("~e1_0123456789abcdef01234567", "entable.claim", 1);
    world.client.dynamic("Staff").insert(&claim).await.unwrap();
    worker(&world).drain().await.unwrap();
    let claim = world.client.dynamic("Staff").get("Sales", claim.row_key()).await.unwrap();
    let is_alive = claim.is_some_and(|claim| claim.get("Dead").is_none());
    assert!(is_alive, "the claim is dead, or gone");
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
struct Late {
    id: u32,
}

/// A task that the handler left behind has no effect once another worker may have the message.
#[tokio::test(start_paused = true)]
async fn an_effect_after_the_lease_is_refused() {
    let world = World::left_to_workers().await;
    let mut egt = world.staff.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Late { id: 2 }).unwrap();
    egt.commit().await.unwrap();
    let (late, staff) = (Arc::new(Mutex::new(None)), world.staff.clone());
    let kept = late.clone();
    let worker = client(&world, OutboxOptions::default()).worker().on(move |cx, message: Late| {
        let (kept, staff) = (kept.clone(), staff.clone());
        async move {
            *kept.lock().unwrap() = Some(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(61)).await;
                let mut egt = staff.transaction();
                egt.insert(&employee(message.id)).unwrap();
                cx.once(egt).await
            }));
            Ok(())
        }
    });
    worker.drain().await.unwrap();
    let task = late.lock().unwrap().take().unwrap();
    let effect = task.await.unwrap();
    assert!(effect.is_err_and(|error| error.is_contended()), "the effect took place");
}

/// A row that also names a copy of an unknown type stays for a program that knows it.
#[tokio::test(start_paused = true)]
async fn an_unknown_copy_keeps_its_dirty_row() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let unknowing = client(&world, OutboxOptions::default()).worker();
    unknowing.drain().await.unwrap();
    assert_eq!(world.open().await.len(), 1, "the work is gone, and nobody did it");
}

/// Throttling never puts work aside.
#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_does_not_count() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    for at in 0..12 {
        let busy = Error::new(ErrorKind::Throttled, "slow down");
        world.fault.inject(RequestKind::Read, at, InjectedFault::Before(busy));
    }
    let stats = worker(&world).drain().await.unwrap();
    assert_eq!((stats.poisoned, stats.applied), (0, 1), "{stats:?}");
}

/// Rows that wait are looked at when no delayed writer can undo them any more, and then removed.
#[tokio::test(start_paused = true)]
async fn a_second_look_comes() {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    let worker = worker(&world);
    worker.drain().await.unwrap();
    assert_eq!(world.open().await.len(), 1);
    world.later(OutboxOptions::WRITE_DEADLINE);
    worker.drain().await.unwrap();
    assert!(world.open().await.is_empty(), "the row stays for ever");
}

/// A store with an entity whose writer wrote its copies and left its dirty row.
async fn with_current_copies() -> World {
    let world = World::new().await;
    let mut one = world.staff.insert(&employee(1)).await.unwrap();
    one.wait_for_copies().await.unwrap();
    one.age = 35;
    // After the transaction and the two copies, the deletion of the dirty row fails.
    let denied = Error::new(ErrorKind::Denied, "not today");
    world.fault.inject(RequestKind::Apply, 3, InjectedFault::Before(denied));
    drop(world.staff.replace(&one).await.unwrap().wait_for_copies().await);
    world.client.wait_for_copies().await;
    assert_eq!((world.open().await.len(), world.fault.pending()), (1, 0));
    world
}

/// A copy that another program changed, and that names the right version, is written.
#[tokio::test(start_paused = true)]
async fn a_copy_that_somebody_changed_is_written() {
    let world = with_current_copies().await;
    let names = world.client.dynamic("StaffByName");
    let copy = async || names.get("Jones", "name_Sales_00000001").await.unwrap().unwrap();
    let mut changed = copy().await;
    changed.set("Age", 99);
    names.replace(&changed).await.unwrap();
    worker(&world).drain().await.unwrap();
    let age = copy().await.get("Age").cloned();
    assert_eq!(age, Some(Value::Int32(35)), "the copy has the age {age:?}");
}

/// A copy that is current settles where no read is behind.
#[tokio::test(start_paused = true)]
async fn a_copy_settles_only_where_reads_are_strong() {
    let world = with_current_copies().await;
    let store = WeakStore::lagging(world.fault.clone());
    let client = client_of(&world, store, OutboxOptions::default());
    client.worker().with::<Employee>().drain().await.unwrap();
    assert_eq!(world.open().await.len(), 1, "the dirty row is gone without a second look");
}

/// A delayed writer can insert a copy that is absent, so that its absence proves nothing.
#[tokio::test(start_paused = true)]
async fn an_absent_copy_waits_for_its_second_look() {
    let world = World::left_to_workers().await;
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    worker(&world).drain().await.unwrap();
    assert_eq!(world.open().await.len(), 1, "the dirty row is gone without a second look");
}

/// The directory keeps the marker of a fence that is damaged.
#[tokio::test(start_paused = true)]
async fn a_damaged_fence_keeps_its_marker() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let staff = world.client.dynamic("Staff");
    staff.insert(&outbox_row("~e0_damaged", "entable.fence", 1)).await.unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    let filter = Filter::parse("Partition eq 'Sales'").unwrap();
    let markers = directory.query(filter).allow_scan().collect().await.unwrap();
    let whole = markers[0].row_key().rsplit_once('_').unwrap().0;
    let marker = DynamicEntity::new(markers[0].partition_key(), format!("{whole}_damaged"))
        .with_framework_names()
        .with("EntityType", "entable.marker")
        .with("Format", 1)
        .with("Table", "Staff")
        .with("Partition", "Sales")
        .with("Registration", "damaged");
    directory.insert(&marker).await.unwrap();
    worker(&world).drain().await.unwrap();
    let kept = directory.get(marker.partition_key(), marker.row_key()).await.unwrap();
    assert!(kept.is_some(), "the fence stands, and its marker is gone");
}

/// Work that is committed while a worker reads a partition without order is found.
#[tokio::test(start_paused = true)]
async fn fences_are_read_before_work() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    worker(&world).drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let (staff, clock) = (world.staff.clone(), world.clock.clone());
    let store = WeakStore::unordered(world.fault.clone(), async move {
        staff.insert(&employee(2)).await.unwrap();
        clock.advance(OutboxOptions::CLOSE_IDLE_AFTER);
    });
    let client = client_of(&world, store, OutboxOptions::default());
    client.worker().with::<Employee>().drain().await.unwrap();
    worker(&world).drain().await.unwrap();
    let copies = world.rows("Staff", "email_jones2@contoso.com").await;
    assert_eq!(copies.len(), 1, "the work is where no worker finds it");
}

/// A partition that shows no open work stays in the directory of a store whose reads lag.
#[tokio::test(start_paused = true)]
async fn partitions_stay_where_reads_lag() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let store = WeakStore::lagging(world.fault.clone());
    let worker = client_of(&world, store, OutboxOptions::default()).worker();
    let worker = worker.with::<Employee>();
    worker.drain().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let stats = worker.drain().await.unwrap();
    assert_eq!(stats.applied, 1, "{stats:?}");
    assert!(world.markers().await == 1 && stats.closed == 0, "the partition left the directory");
}
