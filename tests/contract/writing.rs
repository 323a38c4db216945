//! Tests verbs, transactions and bulk writes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use entable::prelude::*;

use crate::{
    declaring::{Department, Employee, employee},
    store::{TestResult, on_both},
};

#[tokio::test]
async fn one_entity_goes_through_every_verb() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let don = employee(223, "Hall");
        let e = employee(224, "Cao");
        let point = Employee::primary().department("Sales").id(223);

        let mut don = staff.insert(&don).await?;
        assert_eq!(don.timestamp(), None);
        assert!(staff.insert(&don).await.unwrap_err().is_conflict());
        let inserted = don.etag();
        don.age = 36;
        let don = staff.replace(&don).await?;
        assert_ne!(don.etag(), inserted);
        staff.insert_or_replace(&e).await?;
        staff.insert_or_merge(&e).await?;
        staff.patch_at(point.clone(), Employee::patch().age(35).remove_salary()).await?;
        assert!(staff.replace(&don).await.unwrap_err().is_precondition_failed());
        let don = staff
            .update(point.clone(), |e| {
                e.age += 1;
                Ok(())
            })
            .await?;
        assert_eq!(don.age, 36);
        let refused = staff.update(point.clone(), |_| Err("no".into())).await.unwrap_err();
        assert!(refused.is_rejected());
        staff.replace_any(&don).await?;
        assert!(staff.delete(&don).await.unwrap_err().is_precondition_failed());
        assert!(staff.delete_at(point.clone()).await?);
        assert!(!staff.delete_at(point).await?);
        let cao = staff.get(Employee::primary().department("Sales").id(224)).await?.unwrap();
        staff.delete(&cao).await?;
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_transaction_is_all_or_nothing() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        let staff = store.table::<Employee>().await;
        let departments = client.table::<Department>();
        let sales = Department { department: "Sales".into(), employee_count: 0 };
        let mut department = departments.insert(&sales).await?;
        let employee_ = employee(223, "Hall");
        department.employee_count += 1;

        let mut egt = client.transaction();
        egt.insert(&employee_)?.replace(&department)?;
        let done = egt.commit().await?;
        assert_eq!(done.len(), 2);
        assert!(done.iter().all(|written| written.etag.is_some()));

        let mut egt = staff.transaction();
        egt.insert(&employee(224, "Cao"))?.insert(&employee_)?;
        let error = egt.commit().await.unwrap_err();
        assert_eq!(error.failed_index(), Some(1));
        assert_eq!(error.code(), Some("EntityAlreadyExists"));
        assert_eq!(error.status(), Some(409));
        assert!(staff.get(Employee::primary().department("Sales").id(224)).await?.is_none());

        let mut egt = client.transaction();
        let elsewhere = Employee { department: "Marketing".into(), ..employee(1, "Cao") };
        let error = egt.insert(&employee_)?.insert(&elsewhere).unwrap_err();
        assert!(error.is_invalid());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn many_are_written_in_bulk() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        let staff = store.table::<Employee>().await;
        let position = Arc::new(AtomicU64::new(0));
        let bar = position.clone();
        let rows: Vec<Employee> = (1..=150).map(|id| employee(id, "Jones")).collect();

        let report = client
            .bulk()
            .concurrency(8)
            .on_progress(move |p| bar.store(p.done, Ordering::SeqCst))
            .insert_all(rows)
            .await?;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((report.done, position.load(Ordering::SeqCst)), (150, 150));

        let stream = futures_util::stream::iter((150..=160).map(|id| employee(id, "Jones")));
        let report = client.bulk().insert_stream(stream).await?;
        assert_eq!((report.done, report.failed.len(), report.failed[0].index), (10, 1, 0));
        assert!(report.failed[0].error.is_conflict());
        let older = (1..=160).map(|id| Employee { age: 50, ..employee(id, "Jones") });
        let report = client.bulk().insert_or_replace_all(older).await?;
        assert_eq!(report.done, 160, "{:?}", report.failed.first());
        let query =
            staff.query(Employee::primary().department("Sales")).filter(Employee::AGE.eq(50));
        let report = client
            .bulk()
            .update_all(query.clone(), |e| {
                e.age += 1;
                Ok(())
            })
            .await?;
        assert_eq!(report.done, 160, "{report:?}");
        assert!(query.collect().await?.is_empty());
        let all = staff.query(Employee::primary().department("Sales")).collect().await?;
        assert!(all.iter().all(|e| e.age == 51));
        assert_eq!(client.bulk().delete_all(all).await?.done, 160);
        let points = (1..=3).map(|id| Employee::primary().department("Sales").id(id));
        assert_eq!(client.bulk().delete_all(points).await?.done, 3, "gone is what was wanted");
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_changed_partition_names_the_way_out() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let mut don = staff.insert(&employee(223, "Hall")).await?;
        don.id = 224;
        let mut don = staff.replace(&don).await?;
        assert_eq!(don.row_key(), "empid_000224");
        assert!(!store.row_keys("Staff", "Sales").await.contains(&"empid_000223".to_owned()));
        don.department = "Marketing".into();
        let error = staff.replace(&don).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("move_to"), "{error}");
        Ok(())
    })
    .await
}
