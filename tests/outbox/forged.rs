//! Tests rows that somebody wrote who can write some tables and holds no keys: a worker, which can
//! write all tables, changes nothing for them outside of those.

use std::time::Duration;

use entable::{ClientBuilder, Guard, OutboxOptions, WorkerStats, prelude::*, queue::Queue};

use super::{
    fixture::{Employee, World, employee},
    unique::{self, person},
};

fn row(partition_key: &str, row_key: &str, entity_type: &str) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key)
        .with_framework_names()
        .with("Format", 1)
        .with("EntityType", entity_type)
}

/// The guard to leave out of the worker that meets the forged row: none, so that the attack fails, or
/// the one that it fails by.
fn guards(guard: Guard) -> [Option<Guard>; 2] {
    [None, Some(guard)]
}

/// Lets a worker of another client do all work, without a guard.
async fn drain(builder: ClientBuilder, without: Option<Guard>, queue: Option<&str>) -> WorkerStats {
    let builder = match without {
        Some(guard) => builder.without_guard(guard),
        None => builder,
    };
    let client = builder.build().unwrap();
    let worker = client.worker().with::<Employee>().with::<unique::Person>();
    match queue {
        Some(name) => worker.queue(&client.queue(name)).drain().await.unwrap(),
        None => worker.drain().await.unwrap(),
    }
}

impl World {
    fn builder(&self) -> ClientBuilder {
        Client::builder().backend(self.recorder.clone()).clock(self.clock.clone())
    }
}

fn texts(texts: &[&str]) -> String {
    serde_json::to_string(texts).unwrap()
}

#[tokio::test]
async fn a_dirty_row_changes_no_copy_in_a_table_of_others() {
    for without in guards(Guard::OwnTable) {
        let world = World::new().await;
        let others = world.client.table_named::<Employee>("Others");
        others.create().await.unwrap();
        let one = Employee { last_name: "Smith".into(), ..employee(1) };
        others.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
        world.staff.insert(&employee(2)).await.unwrap().wait_for_copies().await.unwrap();
        // There is no employee 1 in `Staff`, so that the copy of that name has to go.
        let keys = ["email_jones1@contoso.com", "at_Sales_000001"];
        let name = texts(&["Employee#ByEmail", "Others", keys[0], keys[1]]);
        let dirty = row("Sales", "~e2_empid_000001", "entable.dirty").with("D_1", name);
        world.client.dynamic("Staff").insert(&dirty).await.unwrap();
        let stats = drain(world.builder(), without, None).await;
        let by_email = Employee::by_email().email("jones1@contoso.com").department("Sales").id(1);
        let is_there = others.get(by_email).await.unwrap().is_some();
        assert_eq!(is_there, without.is_none(), "{without:?}, {stats:?}");
        assert_eq!(stats.unknown, u64::from(without.is_none()));
    }
}

#[tokio::test]
async fn a_table_is_the_indexs_own_in_any_case() {
    let world = World::new().await;
    let by_email = || Employee::by_email().email("jones1@contoso.com").department("Sales").id(1);
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    world.client.dynamic("Staff").delete_at("Sales", "empid_000001").await.unwrap();
    let name = texts(&["Employee#ByEmail", "STAFF", "email_jones1@contoso.com", "at_Sales_000001"]);
    let dirty = row("Sales", "~e2_empid_000001", "entable.dirty").with("D_1", name);
    world.client.dynamic("Staff").insert_or_replace(&dirty).await.unwrap();
    world.client.worker().drain().await.unwrap();
    assert!(world.staff.get(by_email()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_claim_settles_no_reservation_of_another_entity() {
    for without in guards(Guard::OwnReservation) {
        settle(without).await;
    }
}

async fn settle(without: Option<Guard>) {
    let world = unique::World::new().await;
    // Person 1 is about to take the email: the claim `c1` and the reservation, not yet the person.
    let claim = row("empid_Sales", "~e1_c1", "entable.claim");
    world.client.dynamic("Staff").insert(&claim).await.unwrap();
    let reserved = DynamicEntity::new("email_a@a.com", "email")
        .with_framework_names()
        .with("EntityType", "Person#ByEmail")
        .with("Department", "Sales")
        .with("Id", 1)
        .with("SrcP", "empid_Sales")
        .with("SrcR", "000001")
        .with("SrcC", "c1");
    world.client.dynamic("Staff").insert(&reserved).await.unwrap();
    // Another partition has a claim of that id, for an entity that does not derive the key.
    let evil = unique::Person { department: "Evil".into(), ..person(2, "evil@a.com") };
    world.staff.insert(&evil).await.unwrap();
    world.client.wait_for_copies().await;
    let name = texts(&["Person#ByEmail", "Staff", "email_a@a.com", "email", "000009"]);
    let forged = row("empid_Evil", "~e1_c1", "entable.claim").with("C_1", name);
    world.client.dynamic("Staff").insert(&forged).await.unwrap();
    world.later(OutboxOptions::CLAIM_TIME + Duration::from_secs(1));
    world.client.dynamic("Staff").insert_or_replace(&claim).await.unwrap();
    let builder = Client::builder().backend(world.recorder.clone()).clock(world.clock.clone());
    let stats = drain(builder, without, None).await;
    let is_there = world.reservation("a@a.com").await.is_some();
    assert_eq!(is_there, without.is_none(), "{without:?}, {stats:?}");
}

#[tokio::test]
async fn a_fence_takes_no_other_partition_out_of_the_directory() {
    for without in guards(Guard::OwnMarker) {
        close(without).await;
    }
}

async fn close(without: Option<Guard>) {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let marketing = Employee { department: "Marketing".into(), ..employee(2) };
    world.staff.insert(&marketing).await.unwrap().wait_for_copies().await.unwrap();
    let filter = Filter::parse("Partition eq 'Marketing'").unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    let markers = directory.query(filter).allow_scan().collect().await.unwrap();
    let [marker] = &markers[..] else { panic!("{markers:?}") };
    let forged = row("Sales", "~e0_forged", "entable.fence")
        .with("Shard", marker.partition_key())
        .with("Marker", marker.row_key());
    world.client.dynamic("Staff").insert(&forged).await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    // Marketing is in use, and Sales is not.
    let marketing = Employee { department: "Marketing".into(), ..employee(3) };
    world.staff.insert(&marketing).await.unwrap().wait_for_copies().await.unwrap();
    let stats = drain(world.builder(), without, None).await;
    let found = directory.get(marker.partition_key(), marker.row_key()).await.unwrap();
    assert_eq!(found.is_some(), without.is_none(), "{without:?}, {stats:?}");
    assert_eq!(stats.unknown, u64::from(without.is_none()));
}

#[tokio::test]
async fn a_marker_under_other_keys_than_its_partitions_is_left_alone() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    let filter = || Filter::parse("Partition eq 'Sales'").unwrap();
    let markers = directory.query(filter()).allow_scan().collect().await.unwrap();
    // Under the keys of the partition's marker it names a partition without that fence.
    let forged = markers[0].clone().into_inner().with("Partition", "Elsewhere");
    directory.insert_or_replace(&forged).await.unwrap();
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.closed), (1, 0));
    let left = directory.get(markers[0].partition_key(), markers[0].row_key()).await.unwrap();
    assert!(left.is_some());
}

#[tokio::test]
async fn a_done_message_takes_no_receipt_of_another_message() {
    for without in guards(Guard::OwnReceipt) {
        for in_queue in [false, true] {
            take_receipt(without, in_queue).await;
        }
    }
}

async fn take_receipt(without: Option<Guard>, in_queue: bool) {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    world.client.create_table_if_not_exists("Others").await.unwrap();
    let others = world.client.dynamic("Others");
    let receipt = row("Visits", "~e4_abc", "entable.receipt").with("Of", "of another message");
    others.insert(&receipt).await.unwrap();
    let receipts = r#"[["Others","Visits"]]"#;
    if in_queue {
        let text = format!(
            r#"{{"format":1,"id":"abc","type":"Anything","done":true,"receipts":{receipts}}}"#
        );
        world.client.table_queue("work").send(&text, Duration::ZERO).await.unwrap();
    } else {
        let forged = row("Sales", "~e3_abc", "entable.message");
        let forged = forged.with("Type", "Anything").with("Body", "{}").with("Done", true);
        world.client.dynamic("Staff").insert(&forged.with("Receipts", receipts)).await.unwrap();
    }
    world.later(OutboxOptions::WRITE_DEADLINE);
    let stats = drain(world.builder(), without, Some("work")).await;
    assert_eq!((stats.applied, world.open().await), (1, vec![]));
    // Without it, the effect of its message would take place again.
    let is_there = others.get("Visits", "~e4_abc").await.unwrap().is_some();
    assert_eq!(is_there, without.is_none(), "{without:?}, {stats:?}");
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
#[table(name = "Visit", version = 1)]
struct Visit {
    id: u32,
}

/// Somebody who can write the table of the effect puts a receipt there, under the message's id.
#[tokio::test]
async fn a_receipt_of_another_message_leaves_no_effect_out() {
    let world = World::new().await;
    let mut egt = world.client.transaction();
    egt.insert(&employee(1)).unwrap().emit(&Visit { id: 1 }).unwrap();
    egt.commit().await.unwrap().wait_for_copies().await.unwrap();
    let [message] = &world.open().await[..] else { panic!("one message") };
    let forged = row("Visits", &message.replace("~e3_", "~e4_"), "entable.receipt");
    let staff = world.client.dynamic("Staff");
    staff.insert(&forged.with("Of", "of another message")).await.unwrap();

    let worker = world.client.worker().on(|cx, message: Visit| async move {
        let mut egt = cx.client().transaction();
        egt.insert(&Employee { department: "Visits".into(), ..employee(message.id) })?;
        cx.once(egt).await?;
        Ok(())
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!(stats.applied, 0, "{stats:?}");
    // The message is not lost: once the forged row is gone, it has its effect.
    let poisoned = worker.poisoned().await.unwrap();
    assert_eq!(poisoned.len(), 1, "{stats:?}");
    staff.delete_at("Visits", &message.replace("~e3_", "~e4_")).await.unwrap();
    worker.requeue(&poisoned[0]).await.unwrap();
    let worker = world.client.worker().on(|cx, message: Visit| async move {
        let mut egt = cx.client().transaction();
        egt.insert(&Employee { department: "Visits".into(), ..employee(message.id) })?;
        assert!(cx.once(egt).await?);
        Ok(())
    });
    assert_eq!(worker.drain().await.unwrap().applied, 1);
    let point = Employee::primary().department("Visits").id(1);
    assert!(world.staff.get(point).await.unwrap().is_some());
}
