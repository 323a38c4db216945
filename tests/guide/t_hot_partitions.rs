//! T: partitions that take more than their part of the load.

use entable::prelude::*;
use time::{Duration, OffsetDateTime, macros::datetime};

use crate::store::{TestResult, on_both};

const START: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);

/// The rejected design: each hour is a partition, so that all writers share the newest one.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "AccessLog",
    partition_key = "{at:%Y%m%d%H}",
    row_key = "{id:08}",
    allow(hot_partition)
)]
struct ByHour {
    #[table(store)]
    at: OffsetDateTime,
    id: u32,
}

/// Both keys are compound: the hour stands in the RowKey.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "AccessLog",
    partition_key = "{department}_{employee:06}",
    row_key = "{at:%Y%m%d%H}_{id:08}"
)]
struct ByEmployee {
    department: String,
    employee: u32,
    #[table(store)]
    at: OffsetDateTime,
    id: u32,
}

/// Many writers of one stream: a stable hash of the ID spreads it over eight partitions.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "AccessLog", partition_key = "{id:bucket(8)}", row_key = "{at:%Y%m%d%H}_{id:08}")]
struct Spread {
    #[table(store)]
    at: OffsetDateTime,
    id: u32,
}

fn at(id: u32) -> OffsetDateTime {
    START + Duration::minutes(i64::from(id))
}

#[tokio::test]
async fn t01_the_partition_of_the_current_hour_is_the_hottest() -> TestResult {
    on_both(async |store| {
        let log = store.table::<ByHour>().await;
        let rows = (0..100).map(|id| ByHour { at: at(id), id });
        log.bulk().insert_all(rows).await?.into_result()?;
        let report = store.client.partition_report("AccessLog").top(2).await?;
        let hottest: Vec<_> =
            report.top.iter().map(|one| (&*one.partition_key, one.rows)).collect();
        assert_eq!(hottest, [("2014073118", 60), ("2014073119", 40)]);
        assert_eq!(report.top[0].share, 0.6);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn t02_both_keys_are_compound() -> TestResult {
    on_both(async |store| {
        let log = store.table::<ByEmployee>().await;
        let row = |id| ByEmployee { department: "Sales".into(), employee: id % 20, at: at(id), id };
        log.bulk().insert_all((0..100).map(row)).await?.into_result()?;
        let report = store.client.partition_report("AccessLog").await?;
        assert_eq!((report.partitions, report.top[0].share), (20, 0.05));
        // An employee's day is a range of one partition.
        store.recorder.clear();
        let path = ByEmployee::primary().department("Sales").employee(7).at_period(START);
        let hour = log.query(path).collect().await?;
        assert_eq!(hour.iter().map(|row| row.id).collect::<Vec<_>>(), [7, 27, 47]);
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn t04_buckets_are_read_as_one_partition() -> TestResult {
    on_both(async |store| {
        let log = store.table::<Spread>().await;
        let rows = (0..100).map(|id| Spread { at: at(id), id });
        log.bulk().insert_all(rows).await?.into_result()?;
        let report = store.client.partition_report("AccessLog").await?;
        assert_eq!(report.partitions, 8);
        assert!(report.top[0].share < 0.25, "{report}");

        let merged = log.query_many(Spread::primary().id_buckets()).in_key_order().page_size(30);
        store.recorder.clear();
        let first = merged.page(None).await?;
        assert_eq!(store.count(), 8, "one request for each bucket");
        let next = first.next.ok_or("no cursor")?.to_string();
        let second = merged.page(Some(next.parse()?)).await?;
        let ids = first.items.iter().chain(&second.items).map(|row| row.id);
        assert_eq!(ids.collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
        Ok(())
    })
    .await
}
