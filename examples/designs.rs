//! Decides between designs by their numbers: the same questions asked of two layouts, without a store.
//!
//! The access patterns of each design claim what a call may cost; `check` proves it. A plan counts what they ask
//! of the service.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{Prices, prelude::*};

// An index in the partition, or in another one.

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dep_{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}")
)]
struct IndexInside {
    department: String,
    id: u32,
    last_name: String,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dep_{department}",
    row_key = "empid_{id:06}",
    index(ByName, partition_key = "name_{last_name}", row_key = "{department}_{id:06}")
)]
struct IndexElsewhere {
    department: String,
    id: u32,
    last_name: String,
}

entable::access_patterns! {
    INSIDE;
    "by name" range query(IndexInside::by_name().department("Sales").last_name("Jones")) rows 10 at 50/s;
    "hire" write insert::<IndexInside>() requests 1 at 1/s;
}

entable::access_patterns! {
    ELSEWHERE;
    "by name" partition_scan query(IndexElsewhere::by_name().last_name("Jones")) rows 10 at 50/s;
    "hire" write insert::<IndexElsewhere>() requests 3 at 1/s;
}

// A list of ids, or a copy of each entity: both in the partition.

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByName, row_key = "name_{last_name}")
)]
struct Listed {
    department: String,
    id: u32,
    last_name: String,
}

entable::access_patterns! {
    LISTED;
    "by name" range query(Listed::by_name().department("Sales").last_name("Jones")) rows 10 at 50/s;
    "hire" write insert::<Listed>() at 1/s;
}

// A series of 24 hours in one entity, or an entity for each hour.

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:08}", row_key = "{day:08}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(series)]
    sent: [u32; 24],
}

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:08}", row_key = "{day:08}_{hour:02}")]
struct Hour {
    employee: u32,
    day: u32,
    hour: u32,
    sent: u32,
}

entable::access_patterns! {
    SERIES;
    "a week" range query(Day::primary().employee(1).day_range(1..=7)) rows 7 at 100/s;
    "count" write patch_at::<Day>() at 10/s;
}

entable::access_patterns! {
    HOURS;
    "a week" range query(Hour::primary().employee(1).day_range(1..=7)) rows 168 at 100/s;
    "count" write patch_at::<Hour>() at 10/s;
}

fn main() -> Result<(), Error> {
    for patterns in [INSIDE, ELSEWHERE, LISTED, SERIES, HOURS] {
        patterns.check()?;
    }
    // Your region's price list; these are examples.
    let prices = Prices::per_10_000(0.5, 0.5, 0.6, 0.7).with_storage(0.05);

    // Inside: exact, one request for each question, and a name within one department. Elsewhere: two requests
    // more for each hire, and names of all departments.
    let (inside, elsewhere) = (INSIDE.plan(), ELSEWHERE.plan());
    assert_eq!([inside.requests_per_second(), elsewhere.requests_per_second()], [51.0, 53.0]);
    println!("{}", inside.compare(&elsewhere, &prices));

    // A list keeps ids alone, and pays with a read of each entity: 11 requests for ten people. A hire reads the
    // list first.
    let listed = LISTED.plan();
    assert_eq!(listed.requests_per_second(), 50.0 * 11.0 + 2.0);
    assert!(listed.price_per_month(&prices) > 5.0 * inside.price_per_month(&prices));
    println!("{}", inside.compare(&listed, &prices));

    // Both cost one request for a question, but an entity for each hour reads and stores 24 times the rows:
    // 16,800 a second are more than a partition takes.
    let series = SERIES.plan().storing::<Day>(1_000_000);
    let hours = HOURS.plan().storing::<Hour>(24_000_000);
    assert_eq!(series.requests_per_second(), hours.requests_per_second());
    assert!(hours.stored_bytes() > 3 * series.stored_bytes());
    assert!(series.hot_partitions().is_empty());
    assert_eq!(hours.hot_partitions().len(), 1);
    println!("{}", series.compare(&hours, &prices));
    Ok(())
}
