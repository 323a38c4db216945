//! Tests stores that promise less than Azure Table storage does: rows without order, reads that lag, and
//! answers without a date.

use entable::{
    OutboxOptions,
    backend::{Memory, layer::FaultInjector},
    prelude::*,
};

use crate::{
    fixture::{Employee, World, employee},
    weak_store::WeakStore,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Members",
    partition_key = "{club}",
    row_key = "id_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "member", unique)
)]
struct Member {
    club: String,
    id: u32,
    email: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sponsors",
    partition_key = "{club}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}", unique)
)]
struct Sponsor {
    club: String,
    id: u32,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Boats", partition_key = "{club}", row_key = "boat_{id:06}")]
struct Boat {
    club: String,
    id: u32,
}

async fn lagging_client() -> Client {
    let store = WeakStore::lagging(FaultInjector::around(Memory::new()));
    let client = Client::builder().backend(store).build().unwrap();
    client.table::<Member>().create().await.unwrap();
    client.table::<Sponsor>().create().await.unwrap();
    client.table::<Boat>().create().await.unwrap();
    client
}

#[tokio::test]
async fn lagging_reads_reserve_no_value_in_another_partition() {
    let client = lagging_client().await;
    let members = client.table::<Member>();
    let member = Member { club: "Kiel".into(), id: 1, email: "cao@contoso.com".into() };
    let refused = members.insert(&member).await.unwrap_err();
    assert!(refused.is_unsupported(), "{refused}");
    assert!(refused.to_string().contains("strong_reads(true)"), "{refused}");
    for partition in ["Kiel", "email_cao@contoso.com"] {
        let rows = client.dynamic("Members").query(Keys::partition(partition)).collect().await;
        assert_eq!(rows.unwrap().len(), 0, "{partition}");
    }
    // A value that is unique in its own partition is decided by the transaction, without a read.
    let sponsors = client.table::<Sponsor>();
    let sponsor = |id| Sponsor { club: "Kiel".into(), id, name: "Hall".into() };
    sponsors.insert(&sponsor(1)).await.unwrap();
    assert!(sponsors.insert(&sponsor(2)).await.unwrap_err().is_unique_violation());
}

#[tokio::test]
async fn lagging_reads_move_nothing_to_another_partition() {
    let client = lagging_client().await;
    let boats = client.table::<Boat>();
    let mut boat = boats.insert(&Boat { club: "Kiel".into(), id: 1 }).await.unwrap();
    boat.club = "Lübeck".into();
    let refused = boats.move_to(&boat, &boats).await.unwrap_err();
    assert!(refused.is_unsupported(), "{refused}");
    let at_home = boats.get(Boat::primary().club("Kiel").id(1)).await.unwrap();
    assert!(at_home.is_some());
    boat.club = "Kiel".into();
    boat.id = 2;
    boats.move_to(&boat, &boats).await.unwrap();
    assert!(boats.get(Boat::primary().club("Kiel").id(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn an_export_from_a_store_without_order_begins_anew_and_is_never_continued() {
    let store = WeakStore::unordered(FaultInjector::around(Memory::new()), async {});
    let client = Client::builder().backend(store).build().unwrap();
    client.create_table("Rows").await.unwrap();
    for key in ["1", "2"] {
        client.dynamic("Rows").insert(&DynamicEntity::new("p", key)).await.unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.jsonl");
    // Nothing was written so far.
    client.export("Rows").resume().to_file(&path).await.unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();

    let digits = "0123456789abcdef".repeat(2);
    let part = directory.path().join(format!("rows.jsonl.{digits}.part"));
    let interrupted = &whole[..whole.len() - 5];
    std::fs::write(&part, interrupted).unwrap();
    let error = client.export("Rows").resume().to_file(&path).await.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("start again"), "{error:?}");
    assert_eq!(std::fs::read_to_string(&part).unwrap(), interrupted);
    assert_eq!(client.export("Rows").to_file(&path).await.unwrap().digest.rows(), 2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
}

/// A table that a lagging store does not show is not gone, and neither is its work.
#[tokio::test]
async fn a_partition_stays_in_the_directory_while_its_table_is_not_shown() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let store = WeakStore::lagging(world.fault.clone());
    let store = store.hiding("Staff");
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let drained = client.worker().with::<Employee>().drain().await;
    assert_eq!(world.markers().await, 1, "nobody finds its work: {drained:?}");
    assert_eq!(world.client.worker().drain().await.unwrap().applied, 1);
}

/// Without a date in the answer, the age of a row is unknown: it counts as new.
#[tokio::test]
async fn a_row_of_unknown_age_is_not_old() {
    let world = World::left_to_workers().await;
    let claim = DynamicEntity::new("Sales", "~e1_0123456789abcdef01234567")
        .with_framework_names()
        .with("EntityType", "entable.claim")
        .with("Format", 1);
    world.client.dynamic("Staff").insert(&claim).await.unwrap();
    let stored = world.staff.insert(&employee(1)).await.unwrap();
    world.staff.delete(&stored).await.unwrap();
    let idle = Employee { department: "Idle".into(), ..employee(2) };
    world.staff.insert(&idle).await.unwrap();
    let store = WeakStore::telling(world.fault.clone(), |_| None);
    let client = Client::builder().backend(store).clock(world.clock.clone()).build().unwrap();
    let worker = client.worker().with::<Employee>();
    for _ in 0..3 {
        worker.drain().await.unwrap();
        world.later(
            OutboxOptions::WRITE_DEADLINE
                + OutboxOptions::CLAIM_TIME
                + OutboxOptions::CLOSE_IDLE_AFTER,
        );
    }
    let open = world.open().await;
    assert_eq!(open, [claim.row_key(), "~e2_empid_000001"], "its second look never comes");
    let claim = world.client.dynamic("Staff").get("Sales", claim.row_key()).await.unwrap();
    assert_eq!(claim.unwrap().get("Dead"), None, "its writer may be at work");
    assert_eq!(world.markers().await, 2);
}
