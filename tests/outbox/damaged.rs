//! Tests damaged rows of the outbox: each stops no other work.

use std::time::Duration;

use entable::{
    Batch, OutboxOptions, Row, Written,
    backend::{Backend, BoxFuture, Capabilities, Read, Rows, Scan, TableNames, TableRequest},
    prelude::*,
};

use super::{
    fixture::{Employee, World, employee},
    unique::{self, by_email, person},
};

fn row(partition_key: &str, row_key: &str, entity_type: &str) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key)
        .with_framework_names()
        .with("Format", 1)
        .with("EntityType", entity_type)
}

fn by_mail() -> Point<Employee, entable::entity::FullCopy> {
    Employee::by_email().email("jones1@contoso.com").department("Sales").id(1)
}

#[tokio::test]
async fn a_damaged_marker_holds_up_no_partition() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    directory.insert(&row("11600", "0", "entable.marker")).await.unwrap();
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.open, stats.unknown, stats.failures), (0, 1, 0));
    assert!(world.staff.get(by_mail()).await.unwrap().is_some());
    assert!(directory.get("11600", "0").await.unwrap().is_some(), "it is left alone");
}

#[tokio::test]
async fn a_damaged_fence_stands_and_others_are_closed() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    let rows = world.client.dynamic("Staff");
    rows.insert(&row("Sales", "~e0_damaged", "entable.fence")).await.unwrap();
    let directory = world.client.dynamic("EntableDirectory");
    let filter = Filter::parse("Partition eq 'Sales'").unwrap();
    let markers = directory.query(filter).allow_scan().collect().await.unwrap();
    let whole = markers[0].row_key().rsplit_once('_').unwrap().0;
    let marker = row(markers[0].partition_key(), &format!("{whole}_damaged"), "entable.marker");
    let marker = marker.with("Table", "Staff").with("Partition", "Sales");
    directory.insert(&marker.with("Registration", "damaged")).await.unwrap();
    world.later(OutboxOptions::LEASE);
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.failures, stats.closed), (1, 0, 1));
    assert_eq!(world.rows("Staff", "Sales").await, ["empid_000001", "~e0_damaged"]);
    assert_eq!(world.markers().await, 1, "a fence that stands has its marker");
}

#[tokio::test]
async fn a_damaged_claim_is_put_aside() {
    let world = unique::World::new().await;
    let claim = row("empid_Sales", "~e1_damaged", "entable.claim").with("C_1", "no JSON");
    world.client.dynamic("Staff").insert(&claim).await.unwrap();
    world.staff.insert(&person(1, "a@a.com")).await.unwrap();
    world.later(OutboxOptions::CLAIM + Duration::from_secs(1));
    let worker = world.client.worker();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.poisoned, stats.failures), (0, 1, 0));
    assert_eq!(world.open().await, [""; 0]);
    let [poisoned] = &worker.poisoned().await.unwrap()[..] else { panic!("one is poisoned") };
    assert_eq!(poisoned.row_key(), "~e1_damaged");
    assert!(poisoned.error.contains("expected the address of a claimed key"), "{}", poisoned.error);
    worker.requeue(poisoned).await.unwrap();
    assert_eq!(world.open().await, ["~e1_damaged"]);
    assert!(world.staff.get(by_email("a@a.com")).await.unwrap().is_some());
}

#[tokio::test]
async fn damaged_poison_is_handed_out_with_the_rest() {
    let world = World::new().await;
    let damaged = row("Sales", "~e2_empid_000001", "entable.dirty").with("D_1", "no JSON");
    world.client.dynamic("Staff").insert(&damaged).await.unwrap();
    world.staff.insert(&employee(2)).await.unwrap();
    let worker = world.client.worker();
    worker.drain().await.unwrap();
    let poison = world.client.dynamic("EntablePoison");
    poison.insert(&DynamicEntity::new("1", "0")).await.unwrap();
    let all = worker.poisoned().await.unwrap();
    let [broken, other] = &all[..] else { panic!("{all:?}") };
    assert!(broken.error.contains("lacks the text"), "{}", broken.error);
    assert_eq!(other.row_key(), "~e2_empid_000001");
    let error = worker.requeue(broken).await.unwrap_err();
    assert!(error.is_decode() && error.to_string().contains("where it belongs"), "{error}");
}

#[tokio::test]
async fn a_damaged_message_is_put_aside() {
    let world = World::new().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let message = row("Sales", "~e3_damaged", "entable.message");
    world.client.dynamic("Staff").insert(&message).await.unwrap();
    let worker = world.client.worker();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.unknown, stats.poisoned), (0, 0, 1));
    let [poisoned] = &worker.poisoned().await.unwrap()[..] else { panic!("one is poisoned") };
    assert_eq!(poisoned.row_key(), "~e3_damaged");
    assert!(worker.requeue(poisoned).await.unwrap_err().is_decode());
    assert_eq!(worker.poisoned().await.unwrap().len(), 1, "nothing is lost");
}

/// A store whose pages hold rows of open work that do not decode.
#[derive(Debug)]
struct Undecodable<B>(B);

impl<B: Backend> Backend for Undecodable<B> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read<'a>(&'a self, request: Read<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: Scan<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            let mut page = self.0.scan(request).await?;
            for row in &mut page.rows {
                if row.as_ref().is_ok_and(|row| row.row_key().starts_with("~e2_")) {
                    *row = Err(Error::new(ErrorKind::Corrupt, "a property is given twice"));
                }
            }
            Ok(page)
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

#[tokio::test]
async fn a_row_that_does_not_decode_is_counted_and_keeps_its_fence() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let damaged = Undecodable(world.recorder.clone());
    let builder = Client::builder().backend(damaged).clock(world.clock.clone());
    let worker = builder.build().unwrap().worker();
    world.later(OutboxOptions::LEASE);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.unknown, stats.closed, stats.failures, stats.poisoned), (1, 0, 0, 0));
    assert_eq!(world.markers().await, 1, "the partition stays registered");
    // A worker that can read the row finds it.
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied), (0, 1));
    assert!(world.staff.get(by_mail()).await.unwrap().is_some());
}
