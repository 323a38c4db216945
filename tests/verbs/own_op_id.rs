//! Tests that a property `OpId` of an entity is not taken for the id that `RetryPolicy::operation_ids` writes.

use entable::{
    Bag,
    backend::{Memory, layer::RetryPolicy},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Jobs",
    partition_key = "{site}",
    row_key = "job_{id:04}",
    index(ByState, row_key = "state_{state}_{id:04}"),
    index(Everywhere, partition_key = "all", row_key = "at_{site}_{id:04}")
)]
struct Job {
    site: String,
    id: u32,
    state: String,
    #[table(extra)]
    more: Bag,
}

/// The entity of a program that knows no more than its own fields.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Jobs", partition_key = "{site}", row_key = "plain_{id:04}")]
struct Plain {
    site: String,
    id: u32,
    state: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Jobs", partition_key = "{site}", row_key = "wide_{id:04}", wide)]
struct Wide {
    site: String,
    id: u32,
    state: String,
    #[table(part = 2)]
    text: String,
}

/// Values that are no operation id: other types, and Binary values of another length than 12 bytes.
fn own_values() -> Vec<Value> {
    vec!["new".into(), 12.into(), vec![7_u8; 11].into(), vec![7_u8; 13].into(), Vec::new().into()]
}

fn job(op_id: impl Into<Value>) -> Job {
    let mut more = Bag::new();
    more.set("OpId", op_id);
    Job { site: "north".into(), id: 1, state: "open".into(), more }
}

fn at() -> Point<Job> {
    Job::primary().site("north").id(1)
}

async fn jobs(policy: RetryPolicy) -> (Client, Table<Job>) {
    let client = Client::builder().backend(Memory::new()).retry(policy).build().unwrap();
    let jobs = client.table::<Job>();
    jobs.create().await.unwrap();
    (client, jobs)
}

async fn op_id(client: &Client, partition_key: &str, row_key: &str) -> Option<Value> {
    let row = client.dynamic("Jobs").get(partition_key, row_key).await.unwrap().unwrap();
    row.get("OpId").cloned()
}

const ROWS: [(&str, &str); 3] =
    [("north", "job_0001"), ("north", "state_open_0001"), ("all", "at_north_0001")];

#[tokio::test]
async fn an_update_of_it_alone_is_written_to_the_row_and_its_copies() {
    for value in own_values() {
        let (client, jobs) = jobs(RetryPolicy::new()).await;
        jobs.insert(&job("old")).await.unwrap().wait_for_copies().await.unwrap();
        let change = |job: &mut Job| {
            job.more.set("OpId", value.clone());
            Ok(())
        };
        let updated = jobs.update(at(), change).await.unwrap();
        assert_eq!(updated.more.get("OpId"), Some(&value), "the returned entity");
        updated.wait_for_copies().await.unwrap();
        for (partition_key, row_key) in ROWS {
            assert_eq!(op_id(&client, partition_key, row_key).await.as_ref(), Some(&value));
        }
        assert!(jobs.check().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_replacement_of_it_alone_reaches_the_copies() {
    let (client, jobs) = jobs(RetryPolicy::new()).await;
    let mut job = jobs.insert(&job("old")).await.unwrap();
    job.wait_for_copies().await.unwrap();
    job.more.set("OpId", "new");
    jobs.replace(&job).await.unwrap().wait_for_copies().await.unwrap();
    for (partition_key, row_key) in ROWS {
        assert_eq!(op_id(&client, partition_key, row_key).await, Some("new".into()), "{row_key}");
    }
}

// A check waits for one write deadline before it calls a remote copy wrong.
#[tokio::test(start_paused = true)]
async fn a_check_finds_copies_that_differ_in_it() {
    let (client, jobs) = jobs(RetryPolicy::new()).await;
    jobs.insert(&job("right")).await.unwrap().wait_for_copies().await.unwrap();
    for (partition_key, row_key) in &ROWS[1..] {
        let wrong = |copy: &mut DynamicEntity| {
            copy.set("OpId", "wrong");
            Ok(())
        };
        client.dynamic("Jobs").update(partition_key, row_key, wrong).await.unwrap();
    }
    let report = jobs.check().await.unwrap();
    assert_eq!(report.findings.len(), 2, "{:?}", report.findings);
    report.repair().await.unwrap();
    client.worker().drain().await.unwrap();
    assert!(jobs.check().await.unwrap().is_clean());
    for (partition_key, row_key) in ROWS {
        assert_eq!(op_id(&client, partition_key, row_key).await, Some("right".into()), "{row_key}");
    }
}

#[tokio::test]
async fn a_copy_between_stores_writes_rows_that_differ_in_it_alone() {
    let clients = [Client::memory(), Client::memory()];
    for (client, value) in clients.iter().zip(["one", "other"]) {
        client.create_table("Notes").await.unwrap();
        let note = DynamicEntity::new("Sales", "note").with("OpId", value);
        client.dynamic("Notes").insert(&note).await.unwrap();
    }
    let [from, to] = clients;
    assert!(!from.copy_to(&to).compare_only().await.unwrap().is_equal());
    let report = from.copy_to(&to).await.unwrap();
    assert_eq!(report.tables[0].written.rows(), 1);
    let note = to.dynamic("Notes").get("Sales", "note").await.unwrap().unwrap();
    assert_eq!(note.str("OpId").unwrap(), "one");
    assert!(from.copy_to(&to).compare_only().await.unwrap().is_equal());
}

#[tokio::test]
async fn a_row_that_has_one_is_written_without_the_id_of_the_write() {
    for value in own_values() {
        let (client, jobs) = jobs(RetryPolicy::new().operation_ids(true)).await;
        jobs.insert(&job(value.clone())).await.unwrap().wait_for_copies().await.unwrap();
        for (partition_key, row_key) in ROWS {
            assert_eq!(op_id(&client, partition_key, row_key).await.as_ref(), Some(&value));
        }
        assert!(jobs.check().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_program_that_does_not_know_it_keeps_it() {
    let (client, _) = jobs(RetryPolicy::new()).await;
    let plain = client.table::<Plain>();
    plain.insert(&Plain { site: "north".into(), id: 1, state: "open".into() }).await.unwrap();
    let wide = client.table::<Wide>();
    let text = "text".to_owned();
    wide.insert(&Wide { site: "north".into(), id: 1, state: "open".into(), text }).await.unwrap();
    for row_key in ["plain_0001", "wide_0001_02"] {
        let mark = |row: &mut DynamicEntity| {
            row.set("OpId", row_key);
            Ok(())
        };
        client.dynamic("Jobs").update("north", row_key, mark).await.unwrap();
    }
    let mut stored = plain.get(Plain::primary().site("north").id(1)).await.unwrap().unwrap();
    stored.state = "shut".into();
    plain.replace(&stored).await.unwrap();
    let shut = |wide: &mut Wide| {
        wide.state = "shut".into();
        Ok(())
    };
    wide.update(Wide::primary().site("north").id(1), shut).await.unwrap();
    assert_eq!(op_id(&client, "north", "plain_0001").await, Some("plain_0001".into()));
    assert_eq!(op_id(&client, "north", "wide_0001_02").await, Some("wide_0001_02".into()));
}

#[tokio::test]
async fn a_bag_neither_shows_nor_takes_the_id_of_a_write() {
    let (client, jobs) = jobs(RetryPolicy::new().operation_ids(true)).await;
    let mut new = job(1);
    new.more = Bag::new();
    jobs.insert(&new).await.unwrap().wait_for_copies().await.unwrap();
    let id = op_id(&client, "north", "job_0001").await;
    assert_eq!(id.as_ref().and_then(Value::as_bytes).map(<[u8]>::len), Some(12));
    let found = jobs.get(at()).await.unwrap().unwrap();
    assert_eq!(*found, new, "the id belongs to the write and not to the entity");

    let error = jobs.insert_or_replace(&job(vec![7_u8; 12])).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!(error.property(), Some("OpId"));
}
