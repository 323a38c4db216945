//! Tests the upgrade of old rows, and updates of many rows that can be resumed.

use std::sync::{Arc, Mutex};

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee"
)]
pub struct Old {
    pub department: String,
    pub id: u32,
    pub name: String,
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 2,
    upgrade_from(Old),
    index(ByName, row_key = "name_{full_name}_{id:06}")
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub full_name: String,
}

impl From<Old> for Employee {
    fn from(Old { department, id, name }: Old) -> Self {
        Self { department, id, full_name: name }
    }
}

fn old(department: &str, id: u32) -> Old {
    Old { department: department.into(), id, name: "Don".into() }
}

async fn staff(rows: u32) -> (Recorder, Table<Employee>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let rows = (0..rows).map(|id| old(if id % 3 == 0 { "Marketing" } else { "Sales" }, id));
    client.bulk().insert_all(rows).await.unwrap();
    recorder.clear();
    (recorder, client.table())
}

async fn left(staff: &Table<Employee>) -> usize {
    let old = Filter::eq("EntityType", "Employee");
    let query = staff.client().dynamic(staff.name()).query(old).allow_scan();
    query.collect().await.unwrap().len()
}

#[tokio::test]
async fn old_rows_are_rewritten_in_transactions() -> Result<(), Error> {
    let (recorder, staff) = staff(300).await;
    let progress = Arc::new(Mutex::new(Vec::new()));
    let recorded = progress.clone();
    let report =
        staff.upgrade_all().on_progress(move |p| recorded.lock().unwrap().push(p.done)).await?;
    assert_eq!((report.done, report.failed.len()), (300, 0), "{report:?}");
    let writes = recorder.requests().iter().filter(|request| request.is_apply()).count();
    assert_eq!(writes, 6, "one hundred and two hundred entities, two rows each: {recorder}");
    assert_eq!(*progress.lock().unwrap().last().unwrap(), 300);
    assert_eq!(left(&staff).await, 0);
    let by_name = Employee::by_name().department("Sales").full_name("Don");
    assert_eq!(staff.query(by_name).collect().await?.len(), 200);
    assert_eq!(staff.upgrade_all().await?.done, 0, "nothing is left to do");
    Ok(())
}

#[tokio::test]
async fn a_rewrite_goes_on_where_it_was() -> Result<(), Error> {
    let (recorder, staff) = staff(300).await;
    let saved = Arc::new(Mutex::new(Vec::new()));
    let save = saved.clone();
    let sales = || Employee::primary().department("Sales");
    let rewrite = || staff.upgrade_all().within(sales()).page_size(50);
    let begun = rewrite().on_checkpoint(move |at| save.lock().unwrap().push(at.to_string()));
    assert_eq!(begun.await?.done, 200);
    let saved: Vec<String> = saved.lock().unwrap().clone();
    assert!(saved.len() >= 3, "{saved:?}");
    recorder.clear();
    let report = rewrite().resume(saved[2].parse()?).await?;
    assert_eq!(report.done, 0);
    let wrong = staff.upgrade_all().resume(saved[2].parse()?).await.unwrap_err();
    assert!(wrong.is_invalid_cursor());
    assert_eq!(left(&staff).await, 100, "the other department");
    Ok(())
}

#[tokio::test]
async fn a_row_that_changed_meanwhile_is_read_again() -> Result<(), Error> {
    let (_, staff) = staff(3).await;
    let row = staff.get(Employee::primary().department("Sales").id(1)).await?.unwrap();
    let mut newer = row.clone();
    newer.full_name = "Jun".into();
    staff.replace(&newer).await?;
    assert!(staff.replace(&row).await.unwrap_err().is_precondition_failed());
    assert_eq!(staff.upgrade_all().await?.done, 2);
    let row = staff.get(Employee::primary().department("Sales").id(1)).await?.unwrap();
    assert_eq!(row.full_name, "Jun");
    Ok(())
}
