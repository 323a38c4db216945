//! Decides between designs by their numbers: the same questions asked of two layouts, without a store.
//!
//! The access patterns of each design claim what a call may cost; `check` proves it. A plan counts what they ask
//! of the service.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{Prices, prelude::*};
use time::{OffsetDateTime, macros::datetime};

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

// What a page shows of the department: copied into each employee, or read from the department.

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct WithManager {
    department: String,
    id: u32,
    manager: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Joined {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
struct Department {
    name: String,
    manager: String,
}

entable::access_patterns! {
    COPIED;
    "employee" point get(WithManager::primary().department("Sales").id(1)) at 100/s over 200;
    // 100 employees get a new manager: once a day.
    "new manager" write patch_at::<WithManager>() at 100/day over 200;
}

entable::access_patterns! {
    JOINED;
    "employee" point get(Joined::primary().department("Sales").id(1)) at 100/s over 200;
    "its department" point get(Department::primary().name("Sales")) at 100/s over 200;
    "new manager" write patch_at::<Department>() at 1/day over 200;
}

// Departments and employees in one table, or in two.

#[derive(TableEntity)]
#[table(name = "Employees", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Apart {
    department: String,
    id: u32,
}

#[derive(EntitySet)]
enum StaffRow {
    Department(Department),
    Employee(Joined),
}

fn department_page(client: &Client) -> Query<SetOf<StaffRow>, Stored<StaffRow>> {
    client.set::<StaffRow>("Staff").query(Keys::partition("Sales"))
}

entable::access_patterns! {
    ONE_TABLE;
    "department with its 100 employees" partition_scan read_by(department_page) rows 101 at 20/s over 200;
}

entable::access_patterns! {
    TWO_TABLES;
    "department with its 100 employees" point get(Department::primary().name("Sales")) at 20/s over 200;
    "the employees" partition_scan query(Apart::primary().department("Sales")) rows 100 at 20/s over 200;
}

// Visits are kept for 30 days: a table for each day, which is dropped, or one table and a deletion of each visit.

#[derive(TableEntity)]
#[table(name = "Visits{at:%Y%m%d}", partition_key = "{page}", row_key = "{at:desc}_{id:06}")]
struct Dated {
    page: String,
    at: OffsetDateTime,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Visits", partition_key = "{page}", row_key = "{at:desc}_{id:06}")]
struct Kept {
    page: String,
    at: OffsetDateTime,
    id: u32,
}

const WEEK: std::ops::Range<OffsetDateTime> =
    datetime!(2026-11-01 0:00 UTC)..datetime!(2026-11-08 0:00 UTC);

entable::access_patterns! {
    DATED;
    "visit" write insert::<Dated>() requests 1 at 500/s over 50;
    "a week of a page" partition_scan query(Dated::primary().at_between(WEEK).page("home")) rows 700 requests 7 at 1/s;
}

entable::access_patterns! {
    DELETED;
    "visit" write insert::<Kept>() requests 1 at 500/s over 50;
    "a week of a page" range query(Kept::primary().page("home").at_range(WEEK)) rows 700 requests 1 at 1/s;
    // Each visit of 30 days ago.
    "forget" write delete_at::<Kept>() requests 1 at 500/s over 50;
}

fn main() -> Result<(), Error> {
    let designs = [
        INSIDE, ELSEWHERE, LISTED, SERIES, HOURS, COPIED, JOINED, ONE_TABLE, TWO_TABLES, DATED,
        DELETED,
    ];
    for patterns in designs {
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

    // A copy halves the reads. A new manager is one write of each employee, and readers see old ones until the
    // last of them.
    let (copied, joined) = (COPIED.plan(), JOINED.plan());
    assert_eq!(copied.requests_per_second(), 100.0 + 100.0 / 86_400.0);
    assert_eq!(joined.requests_per_second(), 200.0 + 1.0 / 86_400.0);
    println!("{}", copied.compare(&joined, &prices));

    // One table answers with one request for rows of two types, and can change both in one transaction.
    let (one, two) = (ONE_TABLE.plan(), TWO_TABLES.plan());
    assert_eq!([one.requests_per_second(), two.requests_per_second()], [20.0, 40.0]);
    println!("{}", one.compare(&two, &prices));

    // A dropped table costs one request for a day of visits, a deletion one for each. A week is seven requests
    // instead of one, at the same time.
    let (dated, deleted) = (DATED.plan(), DELETED.plan());
    assert_eq!([dated.requests_per_second(), deleted.requests_per_second()], [507.0, 1_001.0]);
    let text = dated.compare(&deleted, &prices);
    assert!(
        text.contains("| a week of a page | PartitionScan, 7 + 0 requests, 1 round trip,"),
        "{text}"
    );
    println!("{text}");
    Ok(())
}
