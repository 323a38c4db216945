//! Tests what asks for and deletes entities by the slots of a series: in dated tables, where some are
//! over, in mixed sets, in buckets, and in entities of several rows.

use std::{sync::Arc, time::Duration};

use entable::{
    Clock, SteppedClock, Ticks,
    backend::{Memory, layer::FaultInjector},
    prelude::*,
};
use time::OffsetDateTime;

const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Gauges{at:%Y%m%d}",
    partition_key = "{site}",
    row_key = "g_{id:06}",
    expires = until,
    index(ByKind, row_key = "kind_{kind}_{id:06}"),
    list(OfOwner, row_key = "owner_{owner}")
)]
struct Gauge {
    site: String,
    id: u32,
    kind: String,
    owner: String,
    at: OffsetDateTime,
    until: Option<OffsetDateTime>,
    #[table(series)]
    hours: [i32; 24],
    #[table(series)]
    notes: [Option<String>; 3],
    #[table(split(2))]
    text: String,
}

/// A member of sets that expires.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Plain", partition_key = "{site}", row_key = "p_{id:06}", expires = until)]
struct Plain {
    site: String,
    id: u32,
    until: OffsetDateTime,
    #[table(series)]
    hours: [i32; 24],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Plain", partition_key = "{site}", row_key = "q_{id:06}")]
struct Other {
    site: String,
    id: u32,
    #[table(series)]
    hours: [i32; 24],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Plain", partition_key = "{site}", row_key = "w_{id:06}", wide)]
struct Several {
    site: String,
    id: u32,
    #[table(series)]
    hours: [i32; 24],
    #[table(part = 2, series)]
    days: [Option<i32>; 7],
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Several)]
struct Days {
    id: u32,
    days: [Option<i32>; 7],
}

#[derive(Debug, EntitySet)]
enum Any {
    Plain(Plain),
    Other(Other),
}

#[derive(Debug, EntitySet)]
enum WithWide {
    Plain(Plain),
    Other(Other),
    Several(Several),
}

/// An entity of two rows in one of four partitions.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Plain", partition_key = "b_{id:bucket(4)}", row_key = "{at:06}_{id:06}", wide)]
struct Spread {
    id: u32,
    at: u32,
    count: i32,
    #[table(part = 2, series)]
    days: [Option<i32>; 7],
}

fn gauge(id: u32, at: OffsetDateTime, until: Option<OffsetDateTime>) -> Gauge {
    let mut hours = [0; 24];
    hours[13] = i32::try_from(id).unwrap();
    Gauge {
        site: "s".into(),
        id,
        kind: ["even", "odd"][id as usize % 2].into(),
        owner: format!("o{}", id % 3),
        at,
        until,
        hours,
        notes: [None, id.is_multiple_of(2).then(|| "n".into()), None],
        text: "x".repeat(40_000),
    }
}

struct World {
    clock: Arc<SteppedClock>,
    fault: FaultInjector,
    client: Client,
}

fn world() -> World {
    let clock = Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()));
    let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(fault.clone()).clock(clock.clone()).build().unwrap();
    World { clock, fault, client }
}

#[tokio::test]
async fn slots_are_asked_for_over_dated_tables_with_entities_that_are_over() -> Result<(), Error> {
    let World { clock, client, .. } = world();
    let gauges = client.table::<Gauge>();
    let now = OffsetDateTime::from(clock.now());
    for id in 1..=12 {
        let at = now - DAY * (id % 3);
        let until = (id % 4 == 0).then(|| now + Duration::from_secs(60));
        gauges.insert(&gauge(id, at, until)).await?;
    }
    let window = || Gauge::primary().at_between(now - DAY * 5..now + DAY).site("s");
    let high = || gauges.query(window()).filter(Gauge::HOURS.at(13).gt(6));
    assert_eq!(high().count().await?, 6);
    clock.advance(Duration::from_secs(61));
    // 8 and 12 are over, and 4 is below.
    assert_eq!(high().count().await?, 4);
    assert_eq!(high().collect().await?.len(), 4);
    assert_eq!(gauges.query(window()).count().await?, 9);
    assert!(!high().filter(Gauge::HOURS.at(13).eq(8)).exists().await?);
    assert!(high().filter(Gauge::HOURS.at(13).eq(7)).exists().await?);
    let noted = || gauges.query(window()).filter(Gauge::NOTES.at(1).eq("n"));
    assert_eq!(noted().count().await?, 3, "2, 6 and 10");
    assert_eq!(noted().take(2).count().await?, 2);
    let kind = || Gauge::by_kind().at_between(now - DAY * 5..now + DAY).site("s").kind("even");
    assert_eq!(gauges.query(kind()).count().await?, 3);
    assert_eq!(gauges.query(kind()).filter(Gauge::HOURS.at(13).ge(6)).count().await?, 2);
    let owned = || Gauge::of_owner().at_between(now - DAY * 5..now + DAY).site("s").owner("o1");
    assert_eq!(gauges.query(owned()).count().await?, 3, "1, 7 and 10");
    assert_eq!(gauges.query(owned()).filter(Gauge::HOURS.at(13).eq(7)).count().await?, 1);
    let report = gauges.query(kind()).filter(Gauge::HOURS.at(13).ge(6)).delete_all().await?;
    assert_eq!((report.done, report.failed.len()), (2, 0));
    assert_eq!(gauges.query(kind()).count().await?, 1);
    assert_eq!(high().delete_all().await?.done, 3, "7, 9 and 11");
    assert_eq!(high().delete_all().await?.requests, 0);
    assert_eq!(gauges.query(window()).count().await?, 4, "1, 2, 3 and 5");
    assert!(gauges.check().await?.is_clean());
    // The expired entity was hidden from the deletion, and is still there.
    let mut left = 0;
    for days in 0..3 {
        let at = now - DAY * days;
        let name = format!("Gauges{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day());
        let rows = client.dynamic(&name).query(Keys::partition("s").prefix("g_")).collect().await?;
        left += rows.len();
    }
    assert_eq!(left, 7);
    Ok(())
}

#[tokio::test]
async fn mixed_sets_are_counted_and_deleted_by_slots() -> Result<(), Error> {
    let World { clock, client, fault, .. } = world();
    client.create_table("Plain").await?;
    let now = OffsetDateTime::from(clock.now());
    for id in 1..=6 {
        let mut hours = [0; 24];
        hours[5] = i32::try_from(id).unwrap();
        let until = now + Duration::from_secs(if id % 2 == 0 { 60 } else { 3600 });
        client.table::<Plain>().insert(&Plain { site: "s".into(), id, until, hours }).await?;
        client.table::<Other>().insert(&Other { site: "s".into(), id, hours }).await?;
    }
    clock.advance(Duration::from_secs(61));
    let set = client.set::<Any>("Plain").query(Keys::partition("s"));
    let high = set.clone().filter(Filter::ge("Hours05", 4));
    for rows in [None, Some(1), Some(2), Some(5)] {
        fault.shorten_pages(rows);
        assert_eq!(set.count().await?, 9);
        assert_eq!(high.count().await?, 4, "one of the first type and three of the other");
        assert_eq!(high.collect().await?.len(), 4);
        assert!(high.exists().await?);
    }
    fault.shorten_pages(None);
    assert_eq!(high.delete_all().await?.done, 4);
    assert!(!high.exists().await?);
    assert_eq!(set.count().await?, 5);

    // With a member of several rows, keys alone are compared.
    for id in 1..=3 {
        let several = Several { site: "s".into(), id, hours: [7; 24], days: [Some(1); 7] };
        client.table::<Several>().insert(&several).await?;
    }
    let set = client.set::<WithWide>("Plain").query(Keys::partition("s"));
    for rows in [None, Some(1), Some(2), Some(3)] {
        fault.shorten_pages(rows);
        assert_eq!(set.collect().await?.len(), 8, "{rows:?}");
        assert_eq!(set.count().await?, 8, "{rows:?}");
        assert!(set.exists().await?);
    }
    let wide = client.table::<Several>();
    let several = || wide.query(Several::primary().site("s"));
    assert_eq!(several().filter(Several::DAYS.at(3).eq(1)).select::<Days>().count().await?, 3);
    let patch = Several::patch().days(3, 9);
    wide.patch_at(Several::primary().site("s").id(2), patch).await?;
    let nine = || several().filter(Several::DAYS.at(3).eq(9)).select::<Days>();
    assert_eq!(nine().count().await?, 1);
    assert!(nine().exists().await?);
    fault.shorten_pages(None);
    let error = several().filter(Several::DAYS.at(3).eq(9)).delete_all().await.unwrap_err();
    assert!(error.is_invalid() && error.property() == Some("Days3"), "{error}");
    assert_eq!(several().take(1).delete_all().await?.done, 1);
    assert_eq!(client.dynamic("Plain").query(Keys::partition("s").prefix("w_")).count().await?, 4);
    assert_eq!(set.delete_all().await?.done, 7);
    Ok(())
}

#[tokio::test]
async fn wide_entities_in_buckets_come_in_key_order_while_some_are_deleted() -> Result<(), Error> {
    let World { client, fault, .. } = world();
    client.create_table("Plain").await?;
    let spread = client.table::<Spread>();
    let all = (0..40).map(|id| Spread { id, at: id % 6, count: 1, days: [Some(1); 7] });
    spread.bulk().insert_all(all).await?.into_result()?;
    let merged = spread.query_many(Spread::primary().id_buckets()).in_key_order();
    for (rows, size) in [(None, 7), (Some(1), 3), (Some(3), 5), (Some(2), 1)] {
        fault.shorten_pages(rows);
        let mut expected: Vec<(u32, u32)> =
            merged.collect().await?.iter().map(|one| (one.at, one.id)).collect();
        assert!(expected.is_sorted());
        let pages = merged.clone().page_size(size);
        let (mut found, mut cursor) = (Vec::new(), None);
        let mut deleted = 0;
        loop {
            let page = pages.page(cursor).await?;
            found.extend(page.items.iter().map(|one| (one.at, one.id)));
            let Some(next) = page.next else { break };
            cursor = Some(next.to_string().parse::<Cursor>()?);
            // The item at the cursor goes, and one that was not read yet.
            if deleted < 2 {
                deleted += 1;
                let last = page.items.last().unwrap();
                spread.delete(last).await?;
                let (at, id) = expected.remove(found.len() + 1);
                assert!(spread.delete_at(Spread::primary().id(id).at(at)).await?);
            }
        }
        assert_eq!(found, expected, "{rows:?} {size}");
    }
    Ok(())
}
