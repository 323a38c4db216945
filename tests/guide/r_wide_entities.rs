//! R: wide entities, of more properties than a row has.

use entable::{Verb, prelude::*};

use crate::store::{TestResult, on_both};

/// Messages of an employee on each day of a year.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 365],
}

fn year() -> Year {
    let days = std::array::from_fn(|day| i32::try_from(day).unwrap());
    Year { department: "Sales".into(), employee: 223, days }
}

fn at() -> Point<Year> {
    Year::primary().department("Sales").employee(223)
}

#[tokio::test]
async fn r01_several_rows_hold_one_entity_of_more_than_252_properties() -> TestResult {
    on_both(async |store| {
        let years = store.table::<Year>().await;
        years.insert(&year()).await?;
        assert_eq!(*years.get(at()).await?.unwrap(), year());
        let found = years.query(Year::primary().department("Sales")).collect().await?;
        assert_eq!(found.iter().map(|year| year.days[364]).collect::<Vec<_>>(), [364]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn r02_365_daily_counts_are_two_rows() -> TestResult {
    on_both(async |store| {
        let years = store.table::<Year>().await;
        years.insert(&year()).await?;
        let rows = store.client.dynamic("Messages").query(Keys::partition("Sales"));
        let rows = rows.collect().await?;
        let keys: Vec<&str> = rows.iter().map(|row| row.row_key()).collect();
        assert_eq!(keys, ["000223_01", "000223_02"]);
        for (day, row) in [(0, &rows[0]), (182, &rows[0]), (183, &rows[1]), (364, &rows[1])] {
            assert_eq!(row.i32(&format!("Day{day:03}"))?, day);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn r03_both_rows_change_in_a_transaction_and_one_day_in_a_merge() -> TestResult {
    on_both(async |store| {
        let years = store.table::<Year>().await;
        let mut seen = years.insert(&year()).await?;
        store.recorder.clear();
        years.patch_at(at(), Year::patch().days(211, 12)).await?;
        let requests = store.recorder.take();
        assert_eq!((requests.len(), requests[0].verbs()), (1, vec![Verb::Merge]));
        seen.days = [0; 365];
        assert!(years.replace(&seen).await.unwrap_err().is_precondition_failed());
        store.recorder.clear();
        years.replace_any(&seen).await?;
        let requests = store.recorder.take();
        assert_eq!((requests.len(), requests[0].operations()), (1, 2));
        assert_eq!(years.get(at()).await?.unwrap().days, [0; 365]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn r04_a_read_is_two_point_reads() -> TestResult {
    on_both(async |store| {
        let years = store.table::<Year>().await;
        years.insert(&year()).await?;
        store.recorder.clear();
        years.get(at()).await?.unwrap();
        let requests = store.recorder.take();
        assert_eq!(requests.len(), 2);
        assert!(requests.iter().all(|request| request.is_read()));
        Ok(())
    })
    .await
}

/// Another program writes the entity anew while its last part is being deleted.
#[tokio::test]
async fn r03_a_deletion_of_what_is_left_takes_no_part_of_a_newer_entity() -> TestResult {
    on_both(async |store| {
        let years = store.table::<Year>().await;
        let others = store.other.table::<Year>();
        years.insert(&year()).await?;
        store.other.dynamic("Messages").delete_at("Sales", "000223_01").await?;
        store.requests();
        // The first write finds that a part is missing, the second would delete the part that is left.
        store.before_next_write(async {});
        let newer = others.clone();
        store.before_next_write(async move {
            newer.insert_or_replace(&year()).await.unwrap();
        });
        assert!(years.delete_at(at()).await?);
        assert_eq!(store.row_keys("Messages", "Sales").await, [""; 0], "all parts or none");
        // One that is gone altogether is not deleted by its parts.
        store.requests();
        assert!(!years.delete_at(at()).await?);
        assert_eq!(store.requests().iter().filter(|request| request.is_apply()).count(), 1);
        Ok(())
    })
    .await
}
