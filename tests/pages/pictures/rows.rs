//! Draws what a table is, and the patterns whose rows are in one partition.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong, Sure},
};

pub(super) const TABLE: &str =
    "A table with two partitions. Each holds rows in the order of their RowKey";

pub(super) fn draw_table(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("Marketing")],
        &[
            (false, &[Code("00001"), Soft("Age 34, Email donh@contoso.com")]),
            (false, &[Code("00002"), Soft("Age 47, Email junc@contoso.com")]),
            (false, &[Code("Department"), Soft("EmployeeCount 153")]),
        ],
        &[Sure("One transaction may hold all of these.")],
    );
    column.gap();
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[(false, &[Code("00010"), Soft("Age 23, Email kenk@contoso.com")])],
        &[Plain("Another server may hold this partition. No transaction spans both.")],
    );
}

pub(super) const PARTITIONS: &str =
    "Three choices of a PartitionKey: one partition, one for each group, one for each row";

pub(super) fn draw_partitions(column: &mut Column) {
    let row = |text| [Code(text)];
    let [one, two, three] = [row("000223"), row("000224"), row("000456")];
    column.text(&[Code("partition_key = \"settings\"")]);
    let rows = [(false, &one[..]), (false, &two[..]), (false, &three[..])];
    column.partition(&[Code("settings")], &rows, &[Plain("Every transaction, but no growth.")]);
    column.gap();
    column.text(&[Code("partition_key = \"{department}\"")]);
    column.partition(&[Code("Sales")], &[(false, &one), (false, &two)], &[]);
    column.gap();
    column.partition(
        &[Code("Marketing")],
        &[(false, &three)],
        &[Sure("Transactions within a department, growth across departments.")],
    );
    column.gap();
    column.text(&[Code("partition_key = \"{id:06}\"")]);
    for id in ["000223", "000224"] {
        column.partition(&[Code(id)], &[(false, &[Code("employee")])], &[]);
        column.gap();
    }
    column.partition(
        &[Code("000456")],
        &[(false, &[Code("employee")])],
        &[Plain("Growth, but no transactions.")],
    );
}

pub(super) const LOCAL_INDEX: &str =
    "One insert writes the primary and its copy in one transaction of one partition";

pub(super) fn draw_local_index(column: &mut Column) {
    column.step(&[Code("staff.insert(&employee)")]);
    column.arrow(&[Plain("one transaction")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("empid_000223"), Soft("the primary")]),
            (false, &[Code("email_jonesj@contoso.com"), Soft("the copy")]),
        ],
        &[Sure("Both rows, or neither. Each key finds the employee with one point read.")],
    );
}

pub(super) const LISTS: &str = "A list row holds the ids of all employees with one last name";

pub(super) fn draw_lists(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("empid_000223"), Soft("Jones")]),
            (true, &[Code("empid_000224"), Soft("Jones")]),
            (false, &[Code("lastname_Jones"), Soft("the list: 223, 224")]),
        ],
        &[Sure("An entity and its entry are written in one transaction.")],
    );
    column.arrow(&[Code("keys(..)"), Plain("1 request: reads the list")]);
    column.step(&[Plain("223, 224")]);
    column.arrow(&[Code("query(..)"), Plain("1 more request for each of the n employees")]);
    column.step(&[Plain("the employees")]);
}

pub(super) const COMPOUND_KEY: &str =
    "The reviews of an employee are neighbours of the employee in the order of RowKeys";

pub(super) fn draw_compound_key(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("empid_000223"), Soft("the employee")]),
            (false, &[Code("empid_000223_2012"), Soft("a review")]),
            (false, &[Code("empid_000223_2013"), Soft("a review")]),
            (true, &[Code("empid_000224"), Soft("the next employee")]),
        ],
        &[
            Plain("One review: a point, by both keys."),
            Sure("An employee with all reviews: one range of neighbours."),
        ],
    );
}

pub(super) const DENORMALISATION: &str =
    "A department row holds a copy of its manager's fields, and one transaction changes both";

pub(super) fn draw_denormalisation(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("department"), Soft("ManagerName, ManagerEmail: copied")]),
            (false, &[Code("empid_000223"), Soft("the manager: Name, Email")]),
        ],
        &[Sure("One transaction changes both.")],
    );
    column.arrow(&[Plain("1 request")]);
    column.step(&[Plain("the department and its manager's name")]);
}

pub(super) const COUNTING: &str =
    "The total is in a row of its own and changes in the transaction of what it counts";

pub(super) fn draw_counting(column: &mut Column) {
    column.step(&[Plain("a new employee")]);
    column.arrow(&[Plain(
        "one transaction: insert the employee, and replace the total under its ETag",
    )]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (false, &[Code("department"), Soft("Employees: 2, was 1")]),
            (true, &[Code("empid_000224"), Soft("new")]),
        ],
        &[Sure("Rows and total always agree. One point read returns the total.")],
    );
}

pub(super) const LOG_TAIL: &str =
    "The inverted time makes the newest row the first of its partition";

pub(super) fn draw_log_tail(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("000223")],
        &[
            (true, &[Code("2519..7199"), Soft("July 31, the newest")]),
            (true, &[Code("2519..8063"), Soft("July 30")]),
            (false, &[Code("2520..0655"), Soft("July 27")]),
            (false, &[Code("2521.."), Soft("the oldest")]),
        ],
        &[Code("take(2)"), Sure("1 request: the first two. Older rows are not read.")],
    );
}

pub(super) const SOFT_DELETE: &str =
    "Living and deleted rows are two neighbouring ranges of one partition";

pub(super) fn draw_soft_delete(column: &mut Column) {
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("state_0_.._000223"), Soft("living")]),
            (true, &[Code("state_0_.._000224"), Soft("living")]),
            (false, &[Code("state_1_20140601_000221"), Soft("deleted on June 1")]),
            (false, &[Code("state_1_20140730_000222"), Soft("deleted on July 30")]),
        ],
        &[
            Plain("Who works here: the first range."),
            Plain("What is old enough to purge: the second range, from its start."),
        ],
    );
}

pub(super) const EXPIRY: &str =
    "A session that has expired is hidden at once, and a worker deletes it later";

pub(super) fn draw_expiry(column: &mut Column) {
    column.text(&[Strong("At 18:00")]);
    column.partition(
        &[Soft("PartitionKey"), Code("ann")],
        &[
            (false, &[Code("s_000001"), Soft("until 17:00: no read returns it")]),
            (true, &[Code("s_000002"), Soft("until 18:30")]),
            (true, &[Code("s_000003"), Soft("until 19:10")]),
        ],
        &[],
    );
    column.late_arrow(&[Plain("a worker deletes expired rows, up to 100 in a request")]);
    column.partition(
        &[Soft("PartitionKey"), Code("ann")],
        &[(true, &[Code("s_000002")]), (true, &[Code("s_000003")])],
        &[],
    );
}
