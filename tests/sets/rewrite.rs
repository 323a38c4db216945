//! Tests updates of many rows: over sets, over entities without a type, past unreadable rows, and
//! beside other writers.

use std::{sync::Arc, time::Duration};

use entable::{
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

use crate::fixture::*;

#[tokio::test]
async fn the_rows_of_a_set_are_updated() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.set::<AnyRow>("Staff");
    client.dynamic("Staff").insert(&DynamicEntity::new("Sales", "note").with("N", 1)).await?;
    recorder.clear();
    let report = staff.bulk().update_all(staff.query(Keys::partition("Sales")), |row| {
        match row {
            AnyRow::Employee(employee) => employee.email = "new@contoso.com".into(),
            AnyRow::Department(department) => department.employee_count += 1,
            AnyRow::Review(review) => review.rating += 1,
            AnyRow::Other(other) => {
                other.set("N", 2);
            }
        }
        Ok(())
    });
    let report = report.await?;
    assert_eq!((report.done, report.failed.len()), (5, 0), "{report:?}");
    let writes = recorder.requests().iter().filter(|request| request.is_apply()).count();
    assert_eq!(writes, 1, "{recorder}");
    let copy = Employee::by_email().department("Sales").email("new@contoso.com");
    assert_eq!(client.table::<Employee>().get(copy).await?.unwrap().id, 223);
    let note = client.dynamic("Staff").get("Sales", "note").await?.unwrap();
    assert_eq!(note.i32("N")?, 2);
    let rejected = staff
        .bulk()
        .update_all(staff.query(Keys::partition("Sales").prefix("d")), |_| Err("not today".into()));
    let error = rejected.await?.into_result().unwrap_err();
    assert!(error.is_rejected());
    assert_eq!(
        error.to_string(),
        "the change of `Department` was not accepted: not today (operation `0`, table `Staff`, PartitionKey `Sales`, RowKey `department`)"
    );
    Ok(())
}

#[tokio::test]
async fn entities_without_a_type_are_updated() -> Result<(), Error> {
    let (_, client) = client().await;
    let dynamic = client.dynamic("Staff");
    let rows = (0..150).map(|n| DynamicEntity::new("Sales", format!("{n:03}")).with("N", n));
    dynamic.bulk().insert_all(rows).await?.into_result()?;
    let all = dynamic.query(Keys::partition("Sales"));
    let report = dynamic.bulk().update_all(all.clone(), |row| {
        let n = row.i32("N")?;
        row.set("N", n + 1).remove("Old");
        Ok(())
    });
    assert_eq!(report.await?.done, 150);
    assert_eq!(all.collect().await?[149].i32("N")?, 150);
    Ok(())
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_no_update() -> Result<(), Error> {
    let (_, client) = client().await;
    client.bulk().insert_all((0..5).map(employee)).await?.into_result()?;
    let dynamic = client.dynamic("Staff");
    let bad = dynamic.update("Sales", "empid_000002", |row| {
        row.set("Age", "old");
        Ok(())
    });
    bad.await?;
    let staff = client.table::<Employee>();
    let all = || staff.query(Employee::primary().department("Sales"));
    let report = staff.bulk().update_all(all(), |employee| Ok(employee.age += 1)).await?;
    assert_eq!((report.done, report.failed.len()), (4, 1));
    assert_eq!(report.failed[0].index, 2);
    assert!(report.failed[0].error.is_decode());
    assert_eq!(report.failed[0].error.keys(), Some(("Sales", "empid_000002")));
    Ok(())
}

/// Two programs on one store; the second one's writes are late.
async fn two() -> (Recorder, Client, FaultInjector, Client) {
    let recorder = Recorder::around(Memory::new());
    let first = Client::builder().backend(recorder.clone()).build().unwrap();
    first.create_table("Staff").await.unwrap();
    let fault = FaultInjector::around(recorder.clone());
    let second = Client::builder().backend(fault.clone()).build().unwrap();
    recorder.clear();
    (recorder, first, fault, second)
}

#[tokio::test(start_paused = true)]
async fn a_set_is_read_again_where_another_writer_was_first() -> Result<(), Error> {
    let (_, first, fault, second) = two().await;
    first.bulk().insert_all((1..=3).map(employee)).await?.into_result()?;
    fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let staff = second.set::<StaffRow>("Staff");
    let update = staff.bulk().update_all(staff.query(Keys::partition("Sales")), |row| {
        if let StaffRow::Employee(employee) = row {
            employee.age += 1;
        }
        Ok(())
    });
    let live = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let staff = first.table::<Employee>();
        let point = |id| Employee::primary().department("Sales").id(id);
        staff.update(point(1), |employee| Ok(employee.age = 50)).await?;
        staff.delete_at(point(2)).await
    };
    let (report, live) = tokio::join!(update, live);
    live?;
    let report = report?;
    assert_eq!((report.done, report.failed.len()), (2, 1), "{report:?}");
    assert!(report.failed[0].error.is_not_found(), "the deleted one is not made again");
    let rows = first.table::<Employee>().query(Employee::primary().department("Sales"));
    let ages: Vec<_> = rows.collect().await?.iter().map(|row| (row.id, row.age)).collect();
    assert_eq!(ages, [(1, 51), (3, 35)]);
    Ok(())
}

mod versions {
    use super::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "e{id:04}",
        entity_type = "Worker",
        index(ByAge, row_key = "age_{age}_{id:04}")
    )]
    pub struct Old {
        pub department: String,
        pub id: u32,
        pub age: String,
    }

    /// The age is a number, and the key is another one.
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "worker_{id:06}",
        version = 2,
        upgrade_from(Old)
    )]
    pub struct Worker {
        pub department: String,
        pub id: u32,
        pub age: i32,
    }

    impl TryFrom<Old> for Worker {
        type Error = std::num::ParseIntError;

        fn try_from(old: Old) -> Result<Self, Self::Error> {
            Ok(Self { department: old.department, id: old.id, age: old.age.parse()? })
        }
    }

    pub fn old(id: u32) -> Old {
        Old { department: "Sales".into(), id, age: format!("{}", 20 + id) }
    }

    pub fn worker(id: u32) -> Worker {
        Worker { department: "Sales".into(), id, age: 20 + i32::try_from(id).unwrap() }
    }
}

use versions::{Old, Worker, old, worker};

async fn keys(client: &Client) -> Vec<String> {
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await.unwrap();
    rows.iter().map(|row| row.row_key().to_owned()).collect()
}

#[tokio::test]
async fn a_row_that_cannot_be_converted_stops_no_upgrade() -> Result<(), Error> {
    let (_, client) = client().await;
    client.bulk().insert_all((0..4).map(old)).await?.into_result()?;
    client.table::<Old>().insert(&Old { age: "old".into(), ..old(9) }).await?;
    let workers = client.table::<Worker>();
    for done in [4, 0] {
        let report = workers.upgrade_all().page_size(2).await?;
        assert_eq!((report.done, report.failed.len()), (done, 1), "{report:?}");
        assert!(report.failed[0].error.is_decode());
        assert_eq!(report.failed[0].error.keys(), Some(("Sales", "e0009")));
    }
    let mut bad = client.dynamic("Staff").get("Sales", "e0009").await?.unwrap();
    bad.set("Age", "29");
    client.dynamic("Staff").patch(&bad).await?;
    let report = workers.upgrade_all().await?;
    assert_eq!((report.done, report.failed.len()), (1, 0), "{report:?}");
    assert!(workers.get(Worker::primary().department("Sales").id(9)).await?.is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_leaves_alone_what_live_writers_did() -> Result<(), Error> {
    let (recorder, live, fault, upgrading) = two().await;
    live.bulk().insert_all((1..=5).map(old)).await?.into_result()?;
    fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let progress = Arc::new(std::sync::Mutex::new(Vec::new()));
    let recorded = progress.clone();
    let workers = upgrading.table::<Worker>();
    let upgrade = workers.upgrade_all().on_progress(move |p| recorded.lock().unwrap().push(p));
    let point = |id| Worker::primary().department("Sales").id(id);
    let writers = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        // A program of the new version writes 1, one of the old version writes 2, and 3 is deleted.
        let new = live.table::<Worker>();
        let rows = new.query(Worker::scan()).collect().await?;
        let mut first = rows.into_iter().find(|row| row.id == 1).unwrap();
        first.age = 50;
        let first = new.replace(&first).await?;
        let olds = live.table::<Old>();
        let old = |id| Old::primary().department("Sales").id(id);
        olds.update(old(2), |row| Ok(row.age = "60".into())).await?;
        olds.delete_at(old(3)).await?;
        Ok::<_, Error>(first)
    };
    let (report, first) = tokio::join!(upgrade.into_future(), writers);
    let (report, first) = (report?, first?);
    assert_eq!((report.done, report.failed.len()), (5, 0), "{report:?}");
    assert_eq!(progress.lock().unwrap().last().unwrap().done, 5);
    assert_eq!(
        keys(&live).await,
        ["worker_000001", "worker_000002", "worker_000004", "worker_000005"]
    );
    let new = live.table::<Worker>();
    assert_eq!(new.get(point(2)).await?.unwrap().age, 60);
    let now = new.get(point(1)).await?.unwrap();
    assert_eq!((now.age, now.etag()), (50, first.etag()), "it was not written again");
    recorder.clear();
    assert_eq!(upgrading.table::<Worker>().upgrade_all().await?.done, 0);
    assert_eq!(recorder.count(), 1, "{recorder}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_row_under_the_new_key_is_not_overwritten() -> Result<(), Error> {
    let (_, live, _, upgrading) = two().await;
    live.bulk().insert_all((1..=3).map(old)).await?.into_result()?;
    live.table::<Worker>().insert(&Worker { age: 99, ..worker(2) }).await?;
    let report = upgrading.table::<Worker>().upgrade_all().await?;
    assert_eq!((report.done, report.failed.len()), (2, 1), "{report:?}");
    assert!(report.failed[0].error.is_conflict(), "{report:?}");
    let point = Worker::primary().department("Sales").id(2);
    assert_eq!(live.table::<Worker>().get(point).await?.unwrap().age, 99);
    assert!(keys(&live).await.contains(&"e0002".to_owned()));
    Ok(())
}

mod narrow {
    use super::*;

    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{unit:03}",
        row_key = "desk_{id}",
        entity_type = "Desk"
    )]
    pub struct Old {
        pub unit: u32,
        pub id: u32,
    }

    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{unit:03}",
        row_key = "desk_{id}",
        version = 2,
        upgrade_from(Old)
    )]
    pub struct Desk {
        pub unit: u32,
        pub id: u32,
    }

    impl From<Old> for Desk {
        fn from(Old { unit, id }: Old) -> Self {
            Self { unit, id }
        }
    }
}

#[tokio::test]
async fn an_upgrade_of_a_partition_whose_key_does_not_fit_is_refused() -> Result<(), Error> {
    let (recorder, client) = client().await;
    let desks = client.table::<narrow::Desk>();
    let within = |unit| desks.upgrade_all().within(narrow::Desk::primary().unit(unit));
    let error = within(1000).await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    assert_eq!((error.property(), recorder.count()), (Some("Unit"), 0));
    client.table::<narrow::Old>().insert(&narrow::Old { unit: 7, id: 1 }).await?;
    client.table::<narrow::Old>().insert(&narrow::Old { unit: 8, id: 1 }).await?;
    assert_eq!(within(7).await?.done, 1);
    Ok(())
}

#[tokio::test]
async fn a_value_of_another_variant_is_not_written_over_a_row() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.set::<AnyRow>("Staff");
    let foreign = DynamicEntity::new("Sales", "note").with("N", 1);
    client.dynamic("Staff").insert(&foreign).await?;
    let before = keys(&client).await;
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    let changed = |row: &str, to: AnyRow| {
        let mut stored = rows.iter().find(|stored| stored.row_key() == row).unwrap().clone();
        *stored = to;
        stored
    };
    recorder.clear();
    for stored in [
        changed("empid_000223", department().into()),
        changed("department", employee(223).into()),
        changed("empid_000223", DynamicEntity::new("Sales", "empid_000223").into()),
        changed("note", department().into()),
        changed("note", DynamicEntity::new("Sales", "other").into()),
        changed("note", DynamicEntity::new("Marketing", "note").into()),
    ] {
        let error = staff.transaction().replace(&stored).unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.keys(), Some((stored.partition_key(), stored.row_key())));
        if stored.row_key() != "note" || matches!(*stored, AnyRow::Department(_)) {
            assert!(staff.transaction().delete(&stored).unwrap_err().is_invalid());
        }
    }
    let said =
        staff.transaction().replace(&changed("empid_000223", department().into())).unwrap_err();
    assert_eq!(
        said.message(),
        "the row was read as `Employee`, but the value is now a `Department`; delete the old entity and insert the \
         new one"
    );
    assert_eq!(recorder.count(), 0);
    assert_eq!(keys(&client).await, before);
    Ok(())
}
