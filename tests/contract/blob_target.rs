//! Entities that leave their table for blobs.

use std::sync::{Arc, atomic::Ordering};

use entable::{
    BlobTarget, Row, ValueRef,
    backend::Memory,
    object_store::{GetOptions, ObjectStore, PutOptions, local::LocalFileSystem, memory::InMemory},
    prelude::*,
    table::Target,
};

use crate::flaky_blobs::{Fate, Flaky};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Current",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{name}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    salary: i64,
    photo: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Patients", partition_key = "{ward}", row_key = "{id:06}")]
struct Patient {
    ward: String,
    id: u32,
    #[table(encrypt)]
    diagnosis: String,
}

const NAME: &str = "archive/Current/Sales/empid_000456.json";

fn don() -> Employee {
    let (department, name) = ("Sales".to_owned(), "Don \"D\"".to_owned());
    Employee { department, id: 456, name, salary: 5_000_000_000, photo: vec![0, 255] }
}

fn point() -> Point<Employee> {
    Employee::primary().department("Sales").id(456)
}

async fn table_with_don() -> Table<Employee> {
    let current = Client::memory().table::<Employee>();
    current.create().await.unwrap();
    current.insert(&don()).await.unwrap();
    current
}

async fn json(blobs: &dyn ObjectStore, name: &str) -> serde_json::Value {
    let blob = blobs.get_opts(&name.into(), GetOptions::default()).await.unwrap();
    serde_json::from_slice(&blob.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn an_entity_becomes_a_blob_of_the_services_json() {
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), Arc::new(files)];
    for blobs in stores {
        let current = table_with_don().await;
        let timestamp = current.get(point()).await.unwrap().unwrap().row().timestamp().unwrap();
        let target = BlobTarget::new(blobs.clone(), "archive");
        // Only a primary row can leave, and the value of a copy is no such row.
        let by_name = Employee::by_name().department("Sales").name("Don \"D\"").id(456);
        let through_copy = current.get(by_name).await.unwrap().unwrap();
        assert!(target.put(&through_copy).await.is_err());
        assert!(current.transfer(point(), &target).await.unwrap());
        assert!(!current.transfer(point(), &target).await.unwrap(), "it is not here any more");
        assert!(current.get(point()).await.unwrap().is_none());
        let expected = serde_json::json!({
            "PartitionKey": "Sales",
            "RowKey": "empid_000456",
            "Timestamp": timestamp.to_string(),
            "Name": "Don \"D\"",
            "Salary@odata.type": "Edm.Int64",
            "Salary": "5000000000",
            "Photo@odata.type": "Edm.Binary",
            "Photo": "AP8=",
        });
        let mut found = json(&*blobs, NAME).await;
        found.as_object_mut().unwrap().retain(|name, _| expected.get(name).is_some());
        assert_eq!(found, expected);
    }
}

/// Another program has changed the blob and kept the row's time: nothing shows that its text is the later one.
#[tokio::test]
async fn a_blob_of_the_rows_own_time_gets_the_rows_properties() {
    let blobs = Arc::new(InMemory::new());
    let stored = table_with_don().await.get(point()).await.unwrap().unwrap();
    let target = BlobTarget::new(blobs.clone(), "archive");
    target.put(&stored).await.unwrap();
    let mut changed = json(&*blobs, NAME).await;
    changed["Name"] = "Dan".into();
    blobs.put_opts(&NAME.into(), changed.to_string().into(), PutOptions::default()).await.unwrap();
    target.put(&stored).await.unwrap();
    assert_eq!(json(&*blobs, NAME).await["Name"], "Don \"D\"");
}

#[tokio::test]
async fn the_blob_has_the_name_of_the_table_that_was_left() {
    let blobs = Arc::new(InMemory::new());
    let other = Client::memory().table_named::<Employee>("Former");
    other.create().await.unwrap();
    other.insert(&don()).await.unwrap();
    assert!(other.transfer(point(), &BlobTarget::new(blobs.clone(), "a/b")).await.unwrap());
    assert_eq!(json(&*blobs, "a/b/Former/Sales/empid_000456.json").await["Name"], "Don \"D\"");
}

#[tokio::test]
async fn a_fault_at_any_request_leaves_the_entity_in_one_place_at_least() {
    for fate in [Fate::Refused, Fate::Unanswered] {
        for number in 0..4 {
            let kept = Arc::new(InMemory::new());
            let blobs = Flaky::over(kept.clone());
            blobs.set_fates([(number, fate)]);
            let current = table_with_don().await;
            let target = BlobTarget::new(blobs.clone(), "archive");
            match current.transfer(point(), &target).await {
                Ok(was_here) => assert!(was_here && number > 0),
                Err(error) => {
                    assert!(error.is_rejected(), "{error}");
                    assert!(
                        current.get(point()).await.unwrap().is_some(),
                        "put first, then deleted"
                    );
                    // A handler is called again.
                    assert!(current.transfer(point(), &target).await.unwrap());
                }
            }
            assert!(current.get(point()).await.unwrap().is_none());
            assert_eq!(json(&*kept, NAME).await["Salary"], "5000000000");
        }
    }
}

/// The row of an entity in a version that the store wrote at that second.
fn version(second: i64, name: &str) -> Row {
    let timestamp = entable::Ticks::new(entable::Ticks::UNIX_EPOCH.get() + second * 10_000_000);
    let row = Row::build("Sales", "empid_000456").with("Name", ValueRef::String(name)).unwrap();
    row.finish_at(timestamp.unwrap()).unwrap()
}

async fn put_row(target: &BlobTarget, row: &Row) -> Result<(), BoxError> {
    Target::<Employee>::put_row(target, "Current", row).await
}

#[tokio::test]
async fn an_earlier_version_never_replaces_a_later_one() {
    let blobs = Flaky::over(Arc::new(InMemory::new()));
    let target = BlobTarget::new(blobs.clone(), "archive");
    put_row(&target, &version(2, "second")).await.unwrap();
    assert_eq!(blobs.take_requests(), [format!("put {NAME}")]);
    put_row(&target, &version(2, "second")).await.unwrap();
    assert_eq!(blobs.take_requests(), [format!("put {NAME}"), format!("get {NAME}")]);
    put_row(&target, &version(1, "first")).await.unwrap();
    assert_eq!(json(&*blobs, NAME).await["Name"], "second", "a worker that was given up is late");
    blobs.take_requests();
    put_row(&target, &version(3, "third")).await.unwrap();
    let requests = [format!("put {NAME}"), format!("get {NAME}"), format!("put {NAME}")];
    assert_eq!(blobs.take_requests(), requests);
    assert_eq!(json(&*blobs, NAME).await["Name"], "third");
}

#[tokio::test(start_paused = true)]
async fn a_put_that_arrives_late_is_refused_by_the_store() {
    let blobs = Flaky::over(Arc::new(InMemory::new()));
    let target = BlobTarget::new(blobs.clone(), "archive");
    put_row(&target, &version(1, "first")).await.unwrap();
    // The replacement by the second version is put, read, and its last put is late.
    blobs.set_fates([(blobs.count() + 2, Fate::Late)]);
    assert!(put_row(&target, &version(2, "second")).await.is_err());
    put_row(&target, &version(3, "third")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(json(&*blobs, NAME).await["Name"], "third");
}

#[tokio::test]
async fn what_is_not_that_entity_is_never_replaced() {
    let blobs = Arc::new(InMemory::new());
    let target = BlobTarget::new(blobs.clone(), "archive");
    for (held, what) in [
        (r#"{"PartitionKey":"sales","RowKey":"empid_000456"}"#, "another entity"),
        ("a photo", "other content"),
    ] {
        blobs.put_opts(&NAME.into(), held.into(), PutOptions::default()).await.unwrap();
        let current = table_with_don().await;
        let error = current.transfer(point(), &target).await.unwrap_err();
        assert!(error.is_rejected() && error.to_string().contains(what), "{error}");
        assert!(current.get(point()).await.unwrap().is_some());
        let blob = blobs.get_opts(&NAME.into(), GetOptions::default()).await.unwrap();
        assert_eq!(blob.bytes().await.unwrap(), held);
    }
}

#[tokio::test]
async fn a_store_without_conditions_takes_entities_too() {
    let blobs = Flaky::over(Arc::new(InMemory::new()));
    blobs.has_no_conditions.store(true, Ordering::SeqCst);
    let target = BlobTarget::new(blobs.clone(), "archive");
    for (second, expected) in [(1, "1"), (3, "3"), (2, "3")] {
        put_row(&target, &version(second, &second.to_string())).await.unwrap();
        assert_eq!(json(&*blobs, NAME).await["Name"], expected);
    }
}

#[tokio::test]
async fn encrypted_values_stay_encrypted() {
    let blobs = Arc::new(InMemory::new());
    let ring = Keyring::from_bytes([7; 32]);
    let client = Client::builder().backend(Memory::new()).keys(ring).build().unwrap();
    let patients = client.table::<Patient>();
    patients.create().await.unwrap();
    let ann = Patient { ward: "A".into(), id: 7, diagnosis: "influenza".into() };
    let stored = patients.insert(&ann).await.unwrap();
    let target = BlobTarget::new(blobs.clone(), "archive");
    let error = Target::<Patient>::put(&target, &stored).await.unwrap_err();
    assert!(error.to_string().contains("call `transfer`"), "{error}");
    let point = || Patient::primary().ward("A").id(7);
    let sealed = client.backend().clone();
    assert!(patients.transfer(point(), &target).await.unwrap());
    let name = "archive/Patients/A/000007.json";
    let found = json(&*blobs, name).await;
    assert!(!found.to_string().contains("influenza"), "{found}");
    assert_eq!(found["Diagnosis@odata.type"], "Edm.Binary");
    assert!(patients.get(point()).await.unwrap().is_none());
    // The stored value is the service's: put back as it is, it opens.
    let bytes = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        found["Diagnosis"].as_str().unwrap(),
    )
    .unwrap();
    let mut row = Row::build("A", "000007");
    for (name, value) in found.as_object().unwrap() {
        if let ("EntityType", Some(text)) = (name.as_str(), value.as_str()) {
            row.put(name, ValueRef::String(text));
        }
    }
    row.put("Diagnosis", ValueRef::Binary(&bytes));
    let operation = entable::Operation::insert(row.finish().unwrap());
    let batch = entable::Batch::single("Patients", operation).unwrap();
    sealed.apply(&batch).await.unwrap();
    assert_eq!(patients.get(point()).await.unwrap().as_deref(), Some(&ann));
}
