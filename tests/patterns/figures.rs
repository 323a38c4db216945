//! The numbers of a design: rates, partitions, storage and money, computed by hand here.

use entable::{
    Prices,
    patterns::{HotPartition, Plan},
    prelude::*,
};
use time::OffsetDateTime;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(
        ByName,
        table = "StaffByName",
        partition_key = "{last_name}",
        row_key = "{department}_{id:06}"
    )
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Events", partition_key = "all", row_key = "{number:08}")]
struct Event {
    number: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Hours",
    partition_key = "{at:%Y%m%d%H}",
    row_key = "{number:08}",
    allow(hot_partition)
)]
struct Timed {
    at: OffsetDateTime,
    number: u32,
}

entable::access_patterns! {
    STAFF;
    "by id" point get(Employee::primary().department("Sales").id(223)) at 3_000/s over 2;
    "by name" partition_scan query(Employee::by_name().last_name("Jones")) rows 40 at 6/min;
    "hire" write insert::<Employee>() at 10/s;
}

entable::access_patterns! {
    HOT;
    "log" write insert::<Event>() at 2_500/s;
    "clock" write insert::<Timed>() at 2_001/s;
    "by id" point get(Employee::primary().department("Sales").id(223)) at 5_000/s;
    "at the target" point get(Employee::by_name().last_name("Jones").department("a").id(1)) at 2_000/s;
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.max(1.0), "{found}, expected {expected}");
}

#[test]
fn rates_and_money_are_those_of_the_requests() {
    let plan = STAFF.plan();
    // An insert: the transaction, the copy, and the deletion of its dirty row.
    close(plan.requests_per_second(), 3_000.0 + 0.1 + 10.0 * 3.0);
    close(plan.account_share(), 3_030.1 / 20_000.0);
    let prices = Prices::per_10_000(1.0, 2.0, 3.0, 4.0);
    let of_a_second = (3_000.0 * 1.0 + 0.1 * 2.0 + 10.0 * (2.0 * 3.0 + 4.0)) / 10_000.0;
    close(plan.price_per_month(&prices), of_a_second * 2_592_000.0);
    close(plan.times(10.0).requests_per_second(), 30_301.0);
    assert!(plan.times(1_000.0).account_share() > 100.0);
    // Half of 3,000 in each of two partitions, and the operations of inserts in one.
    assert!(plan.hot_partitions().is_empty());
    assert!(plan.times(2.0).hot_partitions().iter().any(|hot| hot.partition_key == "{department}"));
}

#[test]
fn hot_partitions_are_named_with_the_cure_that_fits_their_key() {
    let hot = HOT.plan().hot_partitions();
    let found: Vec<_> = hot.iter().map(|hot| (hot.table.as_str(), hot.partitions_needed)).collect();
    assert_eq!(found, [("Events", 2), ("Hours", 2), ("Staff", 3)]);
    let cure = |hot: &HotPartition, words: &str| assert!(hot.cure.contains(words), "{}", hot.cure);
    cure(&hot[0], "bucket");
    cure(&hot[1], "is a time");
    cure(&hot[2], "an index in other partitions");
}

#[test]
fn storage_counts_each_copy() {
    let alone = STAFF.plan().storing::<Event>(1_000).stored_bytes();
    assert!(alone > 0);
    // The copy holds what the primary holds.
    let given = STAFF.plan().storing_bytes::<Employee>(1_000, 500);
    assert_eq!(given.stored_bytes(), 1_000 * 1_000);
    let prices = Prices::per_10_000(0.0, 0.0, 0.0, 0.0).with_storage(2.0);
    close(given.price_per_month(&prices), 1_000_000.0 / 1_073_741_824.0 * 2.0);
}

/// Rows of 512 bytes, pages of 1,000 rows, 20,000 requests a second. A month of a GiB costs 2, and 10,000 pages cost 1.
#[test]
fn growth_shows_a_million_a_billion_and_a_trillion_rows() {
    let plan = STAFF.plan().storing_bytes::<Employee>(1_000, 512);
    let text = plan.markdown_priced(&Prices::per_10_000(9.0, 1.0, 9.0, 9.0).with_storage(2.0));
    for row in [
        "| 10^6 | 0.000466 | 0.0 % | 1000 | 0.050000 s | 0.953674 | 0.100000 |",
        "| 10^9 | 0.465661 | 0.1 % | 1000000 | 50 s | 954 | 100 |",
        "| 10^12 | 466 | 93.1 % | 1000000000 | 13.9 h | 953674 | 100000 |",
    ] {
        assert!(text.contains(row), "{row} is not in {text}");
    }
}

#[tokio::test]
async fn storage_can_be_measured() {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let (department, last_name) = ("Sales".to_owned(), "Jones".to_owned());
    staff.insert(&Employee { department, id: 1, last_name, age: 30 }).await.unwrap();
    let report = client.partition_report("Staff").await.unwrap();
    let plan = STAFF.plan().storing_measured("Staff", &report);
    assert_eq!(plan.stored_bytes(), report.bytes);
    assert!(plan.markdown().contains("| measured |"));
    // An employee and its copy, of the mean size of the rows in the store.
    assert_eq!(report.rows, 2, "the employee, and a row of the outbox");
    let plan = STAFF.plan().storing_at_measured_size::<Employee>(1_000_000_000, &report);
    assert_eq!(plan.stored_bytes(), 1_000_000_000 * report.bytes);
}

#[test]
fn a_plan_survives_its_json() {
    let plan = STAFF.plan().storing::<Employee>(100_000);
    let again = Plan::from_json(&plan.to_json()).unwrap();
    assert_eq!(again.markdown(), plan.markdown());
    assert!(Plan::from_json("{}").unwrap_err().is_decode());
    let later = plan.to_json().replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(Plan::from_json(&later).unwrap_err().message().contains("format 2"));
}

#[test]
fn two_designs_are_compared_pattern_by_pattern() {
    let prices = Prices::per_10_000(1.0, 1.0, 1.0, 1.0);
    let text = STAFF.plan().compare(&HOT.plan(), &prices);
    assert!(text.starts_with("# STAFF and HOT\n"), "{text}");
    assert!(
        text.contains(
            "| hire | Write, 1 + 2 requests, 1 round trip, 3 rows, follows | not asked |"
        ),
        "{text}"
    );
    assert!(
        text.contains("| log | not asked | Write, 1 + 0 requests, 1 round trip, 1 rows, exact |"),
        "{text}"
    );
    assert!(text.contains("| hot partitions | 0 | 3 |"), "{text}");
}

entable::access_patterns! {
    ODD;
    "log <b> | all" write insert::<Event>() at 2_500/s;
}

#[test]
fn a_report_shows_the_plans_that_it_is_given() {
    let report = entable::report![Event];
    assert!(!report.html().contains("Plan of") && !report.markdown().contains("Plan of"));
    let prices = Prices::per_10_000(1.0, 1.0, 1.0, 1.0);
    let report = report.with_plan(ODD.plan()).with_priced_plan(STAFF.plan(), prices);
    let html = report.html();
    for part in [
        "<a class=\"table\" href=\"#plan-ODD\">Plan of ODD</a>",
        "<section id=\"plan-STAFF\">",
        ">log &lt;b&gt; | all</td>",
        "<li>Hot: <code>all</code> of <code>Events</code> gets 2500 entities/s",
        "<td data-head=\"round trips\">1</td>",
        "<th>price of a month</th>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let text = report.markdown();
    for part in [
        "## Plan of ODD\n",
        "| log <b> \\| all | insert | Write | 1 | 0 | 1 | 1 |",
        "- **Hot:** `all`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Money is shown for the plan that has prices, in two tables.
    assert_eq!(text.matches("| price of a month |").count(), 2);
}
