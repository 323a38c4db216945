//! Tests verbs on one entity: ETags, changed keys, races.

use entable::prelude::*;

use crate::{Employee, employee, point, staff};

#[tokio::test]
async fn a_replace_with_other_keys_moves_within_the_partition_only() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let mut don = staff.insert(&employee(1)).await?;
    don.id = 2;
    let don = staff.replace(&don).await?;
    assert_eq!((don.id, don.row_key()), (2, "empid_000002"));
    assert!(staff.get(point(1)).await?.is_none());
    assert!(staff.get(point(2)).await?.is_some());
    staff.insert(&employee(3)).await?;
    let mut taken = don.clone();
    taken.id = 3;
    let error = staff.replace(&taken).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.keys(), Some(("Sales", "empid_000003")), "{error}");
    assert!(staff.get(point(2)).await?.is_some());
    let mut moved = don.clone();
    moved.department = "Ops".into();
    let error = staff.replace(&moved).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("move_to"), "{error}");
    let moved = staff
        .update(point(2), |e| {
            e.id = 9;
            Ok(())
        })
        .await?;
    assert_eq!(moved.row_key(), "empid_000009");
    let mut stale = don.clone();
    stale.id = 77;
    let error = staff.replace(&stale).await.unwrap_err();
    assert!(error.is_not_found() || error.is_precondition_failed(), "{error}");
    assert!(staff.get(point(77)).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_merge_keeps_what_is_absent() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.insert(&Employee { salary: Some(1.0), note: Some("n".into()), ..employee(1) }).await?;
    staff.insert_or_merge(&Employee { age: 50, ..employee(1) }).await?;
    let don = staff.get(point(1)).await?.unwrap();
    assert_eq!((don.age, don.salary, don.note.as_deref()), (50, Some(1.0), Some("n")));
    staff.patch_at(point(1), Employee::patch().age(51).remove_salary().note("m")).await?;
    let don = staff.get(point(1)).await?.unwrap();
    assert_eq!((don.age, don.salary, don.note.as_deref()), (51, None, Some("m")));
    staff.patch_at(point(1), Employee::patch().salary(2.0).remove_salary()).await?;
    assert_eq!(staff.get(point(1)).await?.unwrap().salary, None);
    staff.patch_at(point(1), Employee::patch().remove_salary().salary(2.0)).await?;
    assert_eq!(staff.get(point(1)).await?.unwrap().salary, Some(2.0), "the last word counts");
    let error = staff.patch_at(point(1), Employee::patch()).await.unwrap_err();
    assert!(error.is_invalid() && error.keys().is_some(), "{error}");
    let error = staff.patch_at(point(5), Employee::patch().age(1)).await.unwrap_err();
    assert!(error.is_not_found() && error.keys() == Some(("Sales", "empid_000005")), "{error}");
    let error = staff.patch_at(point(5), Employee::patch().remove_note()).await.unwrap_err();
    assert!(error.is_not_found() && error.keys() == Some(("Sales", "empid_000005")), "{error}");
    Ok(())
}

#[tokio::test]
async fn no_update_is_lost_in_a_race() -> Result<(), Error> {
    let (client, staff) = staff().await;
    staff.insert(&Employee { age: 0, ..employee(1) }).await?;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let staff = client.table::<Employee>();
            tokio::spawn(async move {
                let mut done = 0;
                for _ in 0..10 {
                    match staff.update(point(1), |e| Ok(e.age += 1)).await {
                        Ok(_) => done += 1,
                        Err(error) => assert!(error.is_contended(), "{error}"),
                    }
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    assert_eq!(staff.get(point(1)).await?.unwrap().age, done);
    Ok(())
}

#[tokio::test]
async fn validate_and_update_say_no_in_the_users_words() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let error = staff.insert(&Employee { age: -1, ..employee(1) }).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().contains("not negative"), "{error}");
    assert_eq!(error.table(), Some("Staff"));
    assert_eq!(error.keys(), Some(("Sales", "empid_000001")));
    staff.insert(&employee(1)).await?;
    let error = staff.update(point(1), |e| Ok(e.age = -5)).await.unwrap_err();
    assert!(error.is_rejected() && error.keys().is_some(), "{error}");
    let error = staff.update(point(1), |_| Err("no".into())).await.unwrap_err();
    assert!(error.is_rejected() && error.keys().is_some(), "{error}");
    let error = staff.update(point(4), |_| Ok(())).await.unwrap_err();
    assert!(error.is_not_found() && error.keys().is_some(), "{error}");
    let error = staff.replace_any(&employee(4)).await.unwrap_err();
    assert!(error.is_not_found() && error.keys().is_some(), "{error}");
    assert!(staff.delete_at(point(1)).await?);
    assert!(!staff.delete_at(point(1)).await?);
    Ok(())
}

#[tokio::test]
async fn a_missing_table_is_not_a_missing_entity() -> Result<(), Error> {
    let staff: Table<Employee> = Client::memory().table_named("Archive");
    for error in [
        staff.get(point(1)).await.map(drop).unwrap_err(),
        staff.insert(&employee(1)).await.map(drop).unwrap_err(),
        staff.delete_at(point(1)).await.map(drop).unwrap_err(),
        staff.update(point(1), |_| Ok(())).await.map(drop).unwrap_err(),
        staff.patch_at(point(1), Employee::patch().age(1)).await.map(drop).unwrap_err(),
        staff.query(Employee::scan()).collect().await.map(drop).unwrap_err(),
        staff.bulk().insert_all([employee(1)]).await?.into_result().unwrap_err(),
        staff.delete_table().await.unwrap_err(),
    ] {
        assert!(error.is_not_found(), "{error}");
        assert_eq!(error.table(), Some("Archive"), "{error}");
    }
    for name in ["", "ab", "1abc", "a-b", "tables", "Tables", "é23", &"x".repeat(64), "a b c"] {
        let table: Table<Employee> = Client::memory().table_named(name);
        let error = table.create_if_not_exists().await.unwrap_err();
        assert!(error.is_invalid() || error.is_too_large(), "{error}");
    }
    Ok(())
}
