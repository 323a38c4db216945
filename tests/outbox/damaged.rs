//! Tests damaged rows of the outbox: each stops no other work.

use std::time::Duration;

use entable::{
    Bag, Batch, OutboxOptions, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
    },
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
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
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
    world.later(OutboxOptions::CLAIM_TIME + Duration::from_secs(1));
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
    assert!(error.is_decode() && error.to_string().contains("lacks its place"), "{error}");
}

/// An outbox row with as many properties as a row can have.
fn full_row(row_key: &str, entity_type: &str, letter: char) -> DynamicEntity {
    let mut full = row("Sales", row_key, entity_type);
    for at in 0..250 {
        full.set(format!("{letter}_{at:03}"), "no JSON");
    }
    full
}

/// A dirty row with as many bytes as a row can have, under keys shorter than those of the poison table.
fn largest_row() -> DynamicEntity {
    let mut large = row("Sales", "~e2_b", "entable.dirty");
    let size = |row: &DynamicEntity| {
        let mut built = Row::build(row.partition_key(), row.row_key());
        row.properties().iter().for_each(|(name, value)| built.put(name, value.as_ref()));
        built.finish().unwrap().service_size().unwrap()
    };
    for at in 0.. {
        let name = format!("D_{at:02}");
        large.set(name.clone(), "");
        let room = (entable::limits::ENTITY_BYTES - size(&large)) / 2;
        if room <= entable::limits::STRING_UNITS {
            large.set(name, "x".repeat(room));
            break;
        }
        large.set(name, "x".repeat(entable::limits::STRING_UNITS));
    }
    assert!(size(&large) > entable::limits::ENTITY_BYTES - 2);
    large
}

/// Returns the properties, each as text, in order.
fn sorted_values(properties: &Bag) -> Vec<String> {
    let mut values: Vec<_> = properties.iter().map(|property| format!("{property:?}")).collect();
    values.sort();
    values
}

#[tokio::test]
async fn a_row_without_room_for_notes_is_put_aside_whole() {
    let world = World::new().await;
    let staff = world.client.dynamic("Staff");
    let forged = row("Sales", "~e2_c", "entable.dirty").with("D_1", "no JSON");
    let rows = [
        full_row("~e1_a", "entable.claim", 'C'),
        full_row("~e2_a", "entable.dirty", 'D'),
        largest_row(),
        forged.with("PoisonError", "a name of the poison table"),
    ];
    for row in &rows {
        staff.insert(row).await.unwrap();
    }
    world.staff.insert(&employee(1)).await.unwrap();
    world.later(OutboxOptions::CLAIM_TIME);
    let worker = world.client.worker();
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.poisoned, stats.failures), (0, 4, 0), "{stats:?}");
    assert!(world.staff.get(by_mail()).await.unwrap().is_some(), "other work is done");
    assert_eq!(world.open().await, [""; 0]);
    let poison = world.rows("EntablePoison", "1").await;
    assert_eq!(poison.iter().filter(|key| key.ends_with("_2")).count(), 3, "{poison:?}");
    assert_eq!((poison.len(), world.client.outbox_status().await.unwrap().poisoned), (7, 4));

    let mut all = worker.poisoned().await.unwrap();
    all.sort_by(|a, b| a.row_key().cmp(b.row_key()));
    for (poisoned, was) in all.iter().zip(&rows) {
        assert!(poisoned.error.contains("expected the address"), "{}", poisoned.error);
        let mut was = was.properties().clone();
        was.remove("PoisonError");
        let found = poisoned.outbox_row().to_bag().unwrap();
        assert!(sorted_values(&found) == sorted_values(&was), "{}", poisoned.row_key());
        assert_eq!((&*poisoned.table, &*poisoned.partition_key), ("Staff", "Sales"));
    }
    worker.requeue(&all[0]).await.unwrap();
    assert_eq!(world.open().await, ["~e1_a"]);
    let claim = staff.get("Sales", "~e1_a").await.unwrap().unwrap();
    assert_eq!(claim.properties().len(), 252);
    worker.discard(&all[2]).await.unwrap();
    assert_eq!(world.rows("EntablePoison", "1").await.len(), 3);
}

/// Names that a dirty row holds beside others are work again after it was put back.
#[tokio::test]
async fn all_names_of_a_full_row_come_back() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let staff = world.client.dynamic("Staff");
    let mut dirty = staff.get("Sales", "~e2_empid_000001").await.unwrap().unwrap();
    for at in dirty.properties().len()..252 {
        let email = format!(r#"["Employee#ByEmail","Staff","email_{at}@a.com","at_Sales_000001"]"#);
        dirty.set(format!("D_{at:03}"), email);
    }
    dirty.set("D_251", "no JSON");
    dirty.allow_framework_names();
    staff.replace(&dirty).await.unwrap();
    let worker = world.client.worker();
    assert_eq!(worker.drain().await.unwrap().poisoned, 1);
    let poison = world.client.dynamic("EntablePoison");
    for key in world.rows("EntablePoison", "1").await {
        let mut part = poison.get("1", &key).await.unwrap().unwrap();
        if part.get("D_251").is_some() {
            part.remove("D_251");
            part.allow_framework_names();
            poison.replace(&part).await.unwrap();
        }
    }
    let poisoned = worker.poisoned().await.unwrap().remove(0);
    worker.requeue(&poisoned).await.unwrap();
    let back = staff.get("Sales", "~e2_empid_000001").await.unwrap().unwrap();
    let names = |row: &DynamicEntity| {
        let values = row.properties().iter().filter(|(name, _)| name.starts_with("D_"));
        let mut values: Vec<_> = values.map(|(_, value)| format!("{value:?}")).collect();
        values.sort();
        values
    };
    dirty.remove("D_251");
    assert_eq!(names(&back), names(&dirty));
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.open, stats.unknown, stats.poisoned), (0, 0, 1), "{stats:?}");
    assert!(world.staff.get(by_mail()).await.unwrap().is_some());
}

#[tokio::test]
async fn half_a_poisoned_row_is_listed_and_not_put_back() {
    for lost in ["", "_2"] {
        let world = World::new().await;
        let full = full_row("~e2_a", "entable.dirty", 'D');
        world.client.dynamic("Staff").insert(&full).await.unwrap();
        world.staff.insert(&employee(1)).await.unwrap();
        let worker = world.client.worker();
        worker.drain().await.unwrap();
        let first = world.rows("EntablePoison", "1").await.remove(0);
        let poison = world.client.dynamic("EntablePoison");
        assert!(poison.delete_at("1", &format!("{first}{lost}")).await.unwrap());
        let [half] = &worker.poisoned().await.unwrap()[..] else { panic!("one is poisoned") };
        assert!(half.error.contains("lacks its other part"), "{}", half.error);
        assert_eq!((half.row_key(), &*half.table), ("~e2_a", "Staff"));
        let error = worker.requeue(half).await.unwrap_err();
        assert!(error.is_decode() && error.to_string().contains("or a part"), "{error}");
        worker.discard(half).await.unwrap();
        assert!(worker.poisoned().await.unwrap().is_empty());
    }
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

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
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
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.unknown, stats.closed, stats.failures, stats.poisoned), (1, 0, 0, 0));
    assert_eq!(world.markers().await, 1, "the partition stays registered");
    // A worker that can read the row finds it.
    let stats = world.client.worker().drain().await.unwrap();
    assert_eq!((stats.unknown, stats.applied), (0, 1));
    assert!(world.staff.get(by_mail()).await.unwrap().is_some());
}
