//! Finds everybody of one last name in the whole organisation, with remote lists in rows and in blobs.
//!
//! A remote list is in another partition than its entities. No transaction spans partitions, so these
//! lists are updated asynchronously. The transaction of a change records which lists it concerns; the
//! writer, or a worker, updates them after it.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::sync::Arc;

use entable::{backend::Embedded, object_store::local::LocalFileSystem, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    // For thousands of people: one row for each name, in a partition of its own.
    list(ByLastName, partition_key = "lastname_{last_name}", row_key = "ids"),
    // One row for each city, in a table of its own.
    list(ByCity, table = "StaffByCity", partition_key = "{city}", row_key = "all"),
    // For millions of people: a blob for each country.
    list(ByCountry, partition_key = "countries", row_key = "{country}", in_blob)
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    country: String,
}

fn employee(department: &str, id: u32, last_name: &str) -> Employee {
    let [department, last_name] = [department, last_name].map(str::to_owned);
    Employee { department, id, last_name, city: "Bern".into(), country: "CH".into() }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("entable-lists-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = run(&directory).await;
    std::fs::remove_dir_all(&directory)?;
    result
}

async fn run(directory: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    // A directory serves as blob store beside the embedded store, which one process has to itself.
    // Tables in the cloud need blobs in the cloud.
    let client = Client::builder()
        .backend(Embedded::open(directory.join("staff.db"))?)
        .blobs(Arc::new(LocalFileSystem::new_with_prefix(directory)?))
        .build()?;
    let staff: Table<Employee> = client.table();
    staff.create_if_not_exists().await?;
    for (department, id) in [("Sales", 152), ("Finance", 7), ("Marketing", 42)] {
        let stored = staff.insert(&employee(department, id, "Jones")).await?;
        stored.wait_for_copies().await?;
    }

    // The keys in a list take one request; the entities one more each, in parallel.
    let keys = staff.keys(Employee::by_last_name().last_name("Jones")).await?;
    let keys: Vec<&str> = keys.iter().map(|point| point.partition_key()).collect();
    println!("departments with a Jones: {keys:?}");
    assert_eq!(keys, ["Sales", "Finance", "Marketing"]);
    let jones = staff.query(Employee::by_city().city("Bern")).collect().await?;
    println!("in Bern: {} employees", jones.len());
    assert_eq!(jones.len(), 3);
    let query = staff.query(Employee::by_country().country("CH"));
    assert!(query.explain().to_string().contains("blob=staff/countries/!c!h.jsonl"));
    assert_eq!(query.collect().await?.len(), 3);
    let blob = std::fs::read_to_string(directory.join("staff/countries/!c!h.jsonl"))?;
    print!("the blob of CH:\n{blob}");
    assert!(blob.lines().any(|line| line == r#"["Finance","empid_000007"]"#));

    // A changed name changes two lists: the old name's and the new name's.
    let mut one = jones.into_iter().next().ok_or("there is one")?;
    one.last_name = "Hall".into();
    staff.replace(&one).await?.wait_for_copies().await?;
    let jones = staff.query(Employee::by_last_name().last_name("Jones")).collect().await?;
    println!("after a rename: {} employees are called Jones", jones.len());
    assert_eq!(jones.len(), 2);

    // A worker finishes what a writer could not. Any number of workers may run, in any process. It
    // confirms the removal from the old list later, when no late writer can undo it.
    let stats = client.worker().drain().await?;
    assert_eq!(stats.open, 0);
    println!("a worker: {} open, {} waiting for confirmation", stats.open, stats.waiting);
    assert_eq!(stats.waiting, 1, "the removal from the old list is confirmed later");
    Ok(())
}
