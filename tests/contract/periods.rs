//! Tests entities whose keys hold a field twice: as a coarse date part and exactly.

use entable::{CostClass, prelude::*};
use time::{
    Date, OffsetDateTime,
    macros::{date, datetime},
};

use crate::store::{TestResult, on_both};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "PeriodLogs",
    partition_key = "{host}_{at:%Y%m}",
    row_key = "{at:desc}",
    index(ByLevel, row_key = "l_{level}_{at:desc}"),
    index(
        Newest,
        table = "PeriodLogsByTime",
        partition_key = "{at:%Y%m}",
        row_key = "{at:desc}_{host}"
    )
)]
struct Log {
    host: String,
    at: OffsetDateTime,
    level: u8,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Log)]
struct Time {
    at: OffsetDateTime,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "PeriodHours", partition_key = "{at:%Y%m%d%H}", row_key = "{at:desc}")]
#[table(allow(hot_partition))]
struct Reading {
    at: OffsetDateTime,
    value: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "PeriodDays{at:%Y%m}",
    partition_key = "{host}",
    row_key = "{at:%Y}_{at:%Y%m%d}_{at:desc}_{number}"
)]
struct Event {
    host: String,
    at: OffsetDateTime,
    number: u8,
}

/// The day in the PartitionKey determines the month in the table name.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "PeriodVisits{at:%Y%m}",
    partition_key = "{host}_{at:%Y%m%d}",
    row_key = "{at:desc}",
    index(ByPage, row_key = "p_{page}_{at:desc}"),
    index(
        Daily,
        table = "PeriodVisitsByDay{at:%Y%m}",
        partition_key = "{at:%Y%m%d}",
        row_key = "{at:desc}_{host}"
    )
)]
struct Visit {
    host: String,
    at: OffsetDateTime,
    page: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "PeriodShifts",
    partition_key = "{host}_{at:%Y%m}",
    row_key = "{at:desc}_{number}",
    index(BySeat, row_key = "s_{seat}_{at:desc}", unique)
)]
struct Shift {
    host: String,
    at: OffsetDateTime,
    number: u8,
    seat: u8,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "PeriodBills", partition_key = "{shop}", row_key = "{on:%Y%m}_{on:%Y%m%d}")]
struct Bill {
    shop: String,
    on: Date,
}

const TIMES: [OffsetDateTime; 6] = [
    datetime!(2014-07-31 23:59:59.999_999_9 UTC),
    datetime!(2014-08-01 0:00 UTC),
    datetime!(2014-08-22 0:50:32 UTC),
    datetime!(2014-08-22 0:50:32.000_000_1 UTC),
    datetime!(2014-08-22 23:00 UTC),
    datetime!(2014-09-01 0:00 UTC),
];

/// A comparison as a condition, and as a program makes it.
type Case<E> = (Predicate<E>, fn(&OffsetDateTime, &OffsetDateTime) -> bool);

fn cases<E>(column: fn() -> Column<E, OffsetDateTime>, time: OffsetDateTime) -> [Case<E>; 7] {
    [
        (column().eq(time), OffsetDateTime::eq),
        (column().ne(time), OffsetDateTime::ne),
        (!column().eq(time), OffsetDateTime::ne),
        (column().lt(time), OffsetDateTime::lt),
        (column().le(time), OffsetDateTime::le),
        (column().gt(time), OffsetDateTime::gt),
        (column().ge(time), OffsetDateTime::ge),
    ]
}

/// Makes a path, and tells which times it leads to.
type LogPath = (fn() -> AnyPath<Log>, fn(&OffsetDateTime) -> bool);

const AUGUST: OffsetDateTime = datetime!(2014-08-15 0:00 UTC);

fn is_in_august(at: &OffsetDateTime) -> bool {
    at.month() == time::Month::August
}

/// Returns the times for which `keep` holds, sorted.
fn times(keep: impl Fn(&OffsetDateTime) -> bool) -> Vec<OffsetDateTime> {
    TIMES.into_iter().filter(keep).collect()
}

fn sorted(times: impl IntoIterator<Item = OffsetDateTime>) -> Vec<OffsetDateTime> {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort();
    times
}

fn log(at: OffsetDateTime) -> Log {
    Log { host: "h".into(), at, level: 1 }
}

#[tokio::test]
async fn a_condition_compares_the_time_and_not_its_period() -> TestResult {
    on_both(async |store| {
        let logs = store.table::<Log>().await;
        logs.bulk().insert_all(TIMES.map(log)).await?.into_result()?;
        let paths: [LogPath; 4] = [
            (|| Log::primary().host("h").at_period(AUGUST).any(), is_in_august),
            (|| Log::newest().at_period(AUGUST).any(), is_in_august),
            (|| Log::by_level().host("h").at_period(AUGUST).level(1).any(), is_in_august),
            (|| Log::newest().at_exact(TIMES[3]).any(), |at| *at == TIMES[3]),
        ];
        for time in TIMES {
            for (path, is_in_path) in paths {
                for (condition, holds) in cases(|| Log::AT, time) {
                    let query = logs.query(path()).filter(condition);
                    let plan = query.explain().to_string();
                    let found = query.collect().await?;
                    let found = sorted(found.iter().map(|log| log.at));
                    assert_eq!(found, times(|at| is_in_path(at) && holds(at, &time)), "{plan}");
                }
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_condition_in_a_scan_leaves_the_period_to_the_partition() -> TestResult {
    on_both(async |store| {
        let readings = store.table::<Reading>().await;
        let rows = TIMES.map(|at| Reading { at, value: 1 });
        readings.bulk().insert_all(rows).await?.into_result()?;
        for time in TIMES {
            for (condition, holds) in cases(|| Reading::AT, time) {
                let query = readings.query(Reading::scan()).filter(condition);
                let plan = query.explain().to_string();
                let found = query.collect().await?;
                let found = sorted(found.iter().map(|reading| reading.at));
                assert_eq!(found, times(|at| holds(at, &time)), "{plan}");
            }
        }
        let one = readings.query(Reading::scan()).filter(Reading::AT.eq(TIMES[2]));
        let filter = one.explain().filter;
        assert_eq!(filter, "(EntityType eq 'Reading') and (PartitionKey eq '2014082200') and (RowKey eq '2519936321679999999')");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn periods_before_the_time_in_one_key_are_compared_with_it() -> TestResult {
    on_both(async |store| {
        let events = store.client.table::<Event>();
        let rows = TIMES.map(|at| Event { host: "h".into(), at, number: 1 });
        events.bulk().insert_all(rows).await?.into_result()?;
        for from in TIMES {
            for until in TIMES.into_iter().filter(|until| from <= *until) {
                let path = Event::primary().at_between(from..until).host("h");
                let query = events.query(path);
                let plan = query.explain().to_string();
                let found = query.collect().await?;
                let found = sorted(found.iter().map(|event| event.at));
                assert_eq!(found, times(|at| (from..until).contains(at)), "{plan}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_date_is_compared_by_its_day() -> TestResult {
    on_both(async |store| {
        let bills = store.table::<Bill>().await;
        let days = [date!(2014 - 07 - 31), date!(2014 - 08 - 01), date!(2014 - 08 - 02)];
        let rows = days.map(|on| Bill { shop: "s".into(), on });
        bills.bulk().insert_all(rows).await?.into_result()?;
        for day in days {
            let shop = || Bill::primary().shop("s");
            let found = bills.query(shop()).filter(Bill::ON.gt(day)).collect().await?;
            let after = days.into_iter().filter(|other| *other > day);
            assert!(found.iter().map(|bill| bill.on).eq(after), "{day}");
            let month = shop().on_period(days[1]);
            let found = bills.query(month).filter(Bill::ON.le(day)).collect().await?;
            let until = days.into_iter().skip(1).filter(|other| *other <= day);
            assert!(found.iter().map(|bill| bill.on).eq(until), "{day}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_projection_reads_the_time_and_not_its_period() -> TestResult {
    on_both(async |store| {
        let logs = store.table::<Log>().await;
        logs.bulk().insert_all(TIMES.map(log)).await?.into_result()?;
        let query = logs.query(Log::primary().host("h").at_period(AUGUST)).select::<Time>();
        let found = query.collect().await?;
        assert_eq!(sorted(found.iter().map(|time| time.at)), times(is_in_august));
        let copies = logs.query(Log::newest().at_period(AUGUST)).select::<Time>().collect().await?;
        assert_eq!(sorted(copies.iter().map(|time| time.at)), times(is_in_august));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_copy_names_its_owner_whose_keys_hold_the_period() -> TestResult {
    on_both(async |store| {
        let shifts = store.table::<Shift>().await;
        let shift = |number| Shift { host: "h".into(), at: TIMES[2], number, seat: 7 };
        shifts.insert(&shift(1)).await?;
        let error = shifts.insert(&shift(2)).await.unwrap_err();
        assert_eq!(error.index(), Some("BySeat"));
        let message = error.to_string();
        assert!(message.contains("2519936321679999999_001"), "{message}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_day_in_the_partition_key_gives_the_table_of_its_month() -> TestResult {
    on_both(async |store| {
        let visits = store.client.table::<Visit>();
        let visit = |at| Visit { host: "h".into(), at, page: "p".into() };
        visits.bulk().insert_all(TIMES.map(visit)).await?.into_result()?;
        let paths: [fn(OffsetDateTime) -> AnyPath<Visit>; 3] = [
            |day| Visit::primary().host("h").at_period(day).any(),
            |day| Visit::by_page().host("h").at_period(day).page("p").any(),
            |day| Visit::daily().at_period(day).any(),
        ];
        for day in TIMES {
            for path in paths {
                let query = visits.query(path(day));
                let plan = query.explain().to_string();
                assert!(plan.contains(&format!("2014{:02}\n", u8::from(day.month()))), "{plan}");
                let found = query.collect().await?;
                let found = sorted(found.iter().map(|visit| visit.at));
                assert_eq!(found, times(|at| at.date() == day.date()), "{plan}");
            }
        }
        let one = Visit::primary().host("h").at_period(TIMES[2]).at_exact(TIMES[2]);
        assert_eq!(visits.get(one).await?.unwrap().at, TIMES[2]);
        Ok(())
    })
    .await
}

/// A partition that holds one period of a row family alone is the range that a caller asked for. With copies
/// of another index in it, the service reads rows that nobody asked for.
#[test]
fn a_partition_of_one_period_is_a_range() {
    let client = Client::memory();
    let logs = client.table::<Log>();
    let visits = client.table::<Visit>();
    let hours = client.table::<Reading>();
    let newest = logs.query(Log::newest().at_period(AUGUST)).select::<Time>().explain();
    assert_eq!(newest.class, CostClass::Range, "{newest}");
    let daily = visits.query(Visit::daily().at_period(AUGUST)).explain();
    assert_eq!(daily.class, CostClass::Range, "{daily}");
    let hour = hours.query(Reading::primary().at_period(AUGUST)).filter(Reading::VALUE.ge(3));
    assert_eq!(hour.explain().class, CostClass::Range, "{}", hour.explain());
    let shared = logs.query(Log::primary().host("h").at_period(AUGUST)).explain();
    assert_eq!(shared.class, CostClass::PartitionScan, "{shared}");
    let shared = visits.query(Visit::primary().host("h").at_period(AUGUST)).explain();
    assert_eq!(shared.class, CostClass::PartitionScan, "{shared}");
}
