//! Tests which error says that a transaction is too large, and which that workers are behind.

use std::time::Duration;

use entable::prelude::*;

use crate::fixture::{Employee, World, employee};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Scans",
    partition_key = "{day}",
    row_key = "scan_{id:04}",
    index(ByCode, partition_key = "code_{code}", row_key = "at_{day}_{id:04}", only(code))
)]
struct Scan {
    day: String,
    id: u32,
    code: String,
    front: Vec<u8>,
    back: Vec<u8>,
}

fn scan(id: u32, bytes: usize) -> Scan {
    Scan {
        day: "monday".into(),
        id,
        code: format!("c{id}"),
        front: vec![7; bytes],
        back: vec![7; bytes],
    }
}

/// The entities of one transaction that has room for their rows, but not for the dirty rows of all.
fn scans_without_room_for_dirty_rows(client: &Client) -> Vec<Scan> {
    let mut transaction = client.transaction();
    let mut scans = Vec::new();
    for (id, bytes) in (0..).zip([45_000, 4_000].into_iter().flat_map(|bytes| [bytes; 48])) {
        let next = scan(id, bytes);
        if transaction.insert(&next).is_ok() {
            scans.push(next);
        }
    }
    // Each has a dirty row as well, and all share a fence: they are not too many.
    assert!(scans.len() < 49, "{}", scans.len());
    scans
}

#[tokio::test]
async fn a_transaction_without_room_for_its_dirty_rows_is_too_large() {
    let world = World::new().await;
    let table = world.client.table::<Scan>();
    table.create().await.unwrap();
    let scans = scans_without_room_for_dirty_rows(&world.client);
    let mut transaction = world.client.transaction();
    for scan in &scans {
        transaction.insert(scan).unwrap();
    }
    let error = transaction.commit().await.unwrap_err();
    assert!(error.is_too_large() && !error.is_contended(), "{error}");
    assert_eq!(error.failed_index(), None, "the transaction as a whole");
    assert!(table.get(Scan::primary().day("monday").id(0)).await.unwrap().is_none());

    // A bulk write halves such a group.
    let report = world.client.bulk().insert_all(scans.clone()).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
}

#[tokio::test]
async fn work_of_one_entity_that_no_worker_finishes_is_contended() {
    let world = World::left_to_workers().await;
    world.staff.insert(&employee(1)).await.unwrap();
    let rename = async |nth: u32| {
        let point = Employee::primary().department("Sales").id(1);
        world.staff.patch_at(point, Employee::patch().email(format!("{nth}@contoso.com"))).await
    };
    let mut refused = None;
    for nth in 0..300 {
        if let Err(error) = rename(nth).await {
            refused = Some(error);
            break;
        }
    }
    let error = refused.unwrap();
    assert!(error.is_contended(), "{error}");
    assert!(error.to_string().contains("run a worker"), "{error}");
    assert_eq!(error.keys(), Some(("Sales", "empid_000001")), "the entity, not its dirty row");
    let worker = world.client.worker().with::<Employee>();
    worker.drain().await.unwrap();
    // The worker looks once more when no late write can land any more.
    world.later(Duration::from_secs(600));
    worker.drain().await.unwrap();
    rename(300).await.unwrap();
}
