//! Q: data series in one entity, and the totals of sections D and H.

use entable::{Verb, prelude::*};
use time::{Date, macros::date};

use crate::store::{TestResult, on_both};

const DAY: Date = date!(2014 - 07 - 31);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}")]
struct Day {
    employee: u32,
    day: Date,
    #[table(series("Hour{:02}"))]
    sent: [i32; 24],
}

/// The rejected design: a row for each hour.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}_{hour:02}")]
struct Hour {
    employee: u32,
    day: Date,
    hour: u8,
    sent: i32,
}

fn day() -> Day {
    Day { employee: 223, day: DAY, sent: std::array::from_fn(|hour| hour as i32) }
}

fn at() -> Point<Day> {
    Day::primary().employee(223).day(DAY)
}

#[tokio::test]
async fn q01_the_whole_series_is_one_entity() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        days.insert(&day()).await?;
        let row = store.client.dynamic("Messages").get("000223", "20140731").await?.unwrap();
        for hour in 0..24 {
            assert_eq!(row.i32(&format!("Hour{hour:02}"))?, hour);
        }
        assert_eq!(*days.get(at()).await?.unwrap(), day());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn q02_a_row_for_each_hour_takes_24_reads() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        days.insert(&day()).await?;
        let hours = store.client.table::<Hour>();
        let rows = (0..24).map(|hour| Hour { employee: 223, day: DAY, hour, sent: 1 });
        hours.bulk().insert_all(rows).await?.into_result()?;
        store.recorder.clear();
        let points = (0..24).map(|hour| Hour::primary().employee(223).day(DAY).hour(hour));
        assert_eq!(hours.get_many(points).await?.len(), 24);
        assert_eq!(store.count(), 24);
        days.get(at()).await?;
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn q03_one_hour_is_one_merge_of_one_property() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        days.insert(&day()).await?;
        store.recorder.clear();
        days.patch_at(at(), Day::patch().sent(13, 99)).await?;
        let requests = store.requests();
        assert_eq!((requests.len(), requests[0].verbs()), (1, vec![Verb::Merge]));
        // Another program merges another hour, which stays.
        let hour = DynamicEntity::new("000223", "20140731").with("Hour07", 70);
        store.other.dynamic("Messages").insert_or_merge(&hour).await?;
        days.patch_at(at(), Day::patch().sent(14, 98)).await?;
        let mut expected = day();
        (expected.sent[7], expected.sent[13], expected.sent[14]) = (70, 99, 98);
        assert_eq!(*days.get(at()).await?.unwrap(), expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn q05_many_clients_count_under_the_etag() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        let stored = days.insert(&Day { sent: [0; 24], ..day() }).await?;
        let late = days.patch(&stored, Day::patch().sent(0, 1)).await;
        late?;
        let late = days.patch(&stored, Day::patch().sent(1, 1)).await.unwrap_err();
        assert!(late.is_precondition_failed());

        // Another program is first once: the update reads again.
        let other = store.other.table::<Day>();
        store.before_next_write(async move {
            other.update(at(), |it| Ok(it.sent[5] += 1)).await.unwrap();
        });
        let mut tries = 0;
        let counted = days.update(at(), |it| {
            tries += 1;
            it.sent[5] += 1;
            Ok(())
        });
        assert_eq!((counted.await?.sent[5], tries), (2, 2));
        Ok(())
    })
    .await
}

/// Writers of one row through one client take turns, so that none of them loses a race.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q05_500_tasks_of_one_client_all_count() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        days.insert(&Day { sent: [0; 24], ..day() }).await?;
        store.recorder.clear();
        let tasks: Vec<_> = (0..500)
            .map(|_| {
                let days = days.clone();
                tokio::spawn(async move { days.update(at(), |it| Ok(it.sent[13] += 1)).await })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        let requests = store.recorder.take().len();
        // On a slow emulator, a writer that waited for a minute goes on without its turn.
        if !store.is_emulator {
            assert_eq!(requests, 2 * 500, "each read once and wrote once");
        }
        let counted = days.get(at()).await?.unwrap();
        assert_eq!((counted.sent[13], counted.sent.iter().sum::<i32>()), (500, 500));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c10_a_day_is_one_entity_of_24_properties() -> TestResult {
    on_both(async |store| {
        let days = store.table::<Day>().await;
        days.insert(&day()).await?;
        let row = store.client.dynamic("Messages").get("000223", "20140731").await?.unwrap();
        assert_eq!(row.properties().len(), 24 + 1, "the hours and the type");
        assert_eq!(days.query(Day::scan()).count().await?, 1);
        Ok(())
    })
    .await
}
