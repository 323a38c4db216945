//! A pattern fails when its call costs more than it claims, and says which and why.

use entable::{
    patterns::{self, Pattern},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    age: i32,
}

fn sales() -> Partition<Employee> {
    Employee::primary().department("Sales").into()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Readings", partition_key = "{sensor}", row_key = "{number:08}")]
struct Reading {
    sensor: String,
    number: u32,
    value: f64,
}

fn sensor() -> Partition<Reading> {
    Reading::primary().sensor("a").into()
}

fn young(client: &Client) -> Query<Employee> {
    client.table::<Employee>().query(sales()).filter(Employee::AGE.lt(30))
}

entable::access_patterns! {
    /// What holds.
    STAFF;
    "by id" point get(Employee::primary().department("Sales").id(223)) at 500/s over 40;
    "by e-mail" point get(Employee::by_email().email("jones@contoso.com")) at 50/s;
    "by last name" range query(Employee::by_name().department("Sales").last_name("Jones")).take(40)
        rows 40 at 0.5/s requests 1;
    "the young" partition_scan read_by(young) rows 2_500 requests 3 at 4/day;
    "everybody of 30" table_scan query(Employee::scan()).filter(Employee::AGE.eq(30)).allow_scan() at 1/day;
    "hire" write insert::<Employee>() requests 5 at 2/h;
    "leave" write delete::<Employee>() at 1/min;
}

#[test]
fn patterns_that_hold_are_accepted() {
    STAFF.check().unwrap();
    assert_eq!(STAFF.name(), "STAFF");
    // A cheaper class than the claimed one holds.
    let point = patterns::get(Employee::primary().department("Sales").id(1));
    assert_eq!(Pattern::range("a row", point).request_count(), 1);
}

entable::access_patterns! {
    BROKEN;
    "became a scan" range query(sensor());
    "no bound" range query(sensor()).filter(Reading::VALUE.ge(30.0));
    "refused" partition_scan query(sensor()).page_size(0);
    "a request more" write insert::<Employee>() requests 4;
    "pages" partition_scan query(sales()) rows 1_001 requests 1;
    "reads" write query(sales());
    "writes" point insert::<Employee>();
    "holds" partition_scan query(sales());
}

#[test]
fn each_broken_claim_is_named_with_what_it_is_now() {
    let error = BROKEN.check().unwrap_err();
    assert!(error.is_invalid());
    let lines: Vec<&str> = error.message().lines().collect();
    assert_eq!(
        lines[0],
        "7 of 8 patterns of BROKEN do not hold; change the path or what the pattern claims"
    );
    let expected = [
        (
            "became a scan",
            "query of `Readings` claims to be a Range and is a PartitionScan: $filter=",
        ),
        ("no bound", "claims to be a Range and is a PartitionScan: $filter="),
        ("refused", "a page has 1 to 1000 rows, not 0"),
        ("a request more", "insert of `Staff` claims at most 4 requests and sends 5"),
        ("pages", "claims at most 1 requests and sends 2"),
        ("reads", "query of `Staff` claims to write and is a Range"),
        ("writes", "insert of `Staff` claims to be a Point and writes"),
    ];
    assert_eq!(lines.len(), expected.len() + 1, "{}", error.message());
    for ((name, why), line) in expected.iter().zip(&lines[1..]) {
        assert!(line.starts_with(&format!("- {name:?}: ")) && line.contains(why), "{line}");
    }
}
