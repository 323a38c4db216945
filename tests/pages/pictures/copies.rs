//! Draws where the rows of an entity are, and the way of an insert with a copy in another partition.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong, Sure},
};

pub(super) const OVERVIEW: &str =
    "An entity, its index and its list in one transaction, and an index in another partition";

pub(super) fn draw_overview(column: &mut Column) {
    column.step(&[Code("staff.insert(&employee)")]);
    column.arrow(&[Plain("one transaction")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[
            (true, &[Code("empid_000223"), Soft("the employee")]),
            (false, &[Code("name_Jones_000223"), Soft("index by name: a copy")]),
            (false, &[Code("city_Seattle"), Soft("list by city: keys of employees")]),
        ],
        &[Sure("All of these rows, or none.")],
    );
    column.late_arrow(&[Plain("shortly afterwards; a worker finishes it after a crash")]);
    column.partition(
        &[Soft("PartitionKey"), Code("email_jonesj@contoso.com")],
        &[(false, &[Code("Sales_000223"), Soft("index by e-mail, in another partition: a copy")])],
        &[],
    );
}

pub(super) const TITLE: &str =
    "An insert writes the entity and its open work in one transaction, and the copy afterwards";

pub(super) fn draw(column: &mut Column) {
    draw_with_keys(
        column,
        ["Sales", "empid_000223"],
        ["email_jonesj@contoso.com", "at_Sales_000223"],
    );
}

pub(super) const REMOTE_INDEX: &str =
    "The entity and its open work in one transaction, and the copy in its own partition afterwards";

pub(super) fn draw_remote_index(column: &mut Column) {
    draw_with_keys(column, ["empid_Sales", "000223"], ["email_jonesj@contoso.com", "Sales_000223"]);
}

/// Draws an insert with the keys of the primary and of the copy.
fn draw_with_keys(column: &mut Column, primary: [&str; 2], copy: [&str; 2]) {
    let dirty_row = format!("~e2_{}", primary[1]);
    column.step(&[
        Code("staff.insert(&employee)"),
        Soft("once for each process and partition: register"),
    ]);
    column.arrow(&[Plain("1. one transaction")]);
    column.partition(
        &[Soft("PartitionKey"), Code(primary[0])],
        &[
            (true, &[Code(primary[1]), Soft("the entity")]),
            (false, &[Code(&dirty_row), Soft("a dirty row: names the copy that may be wrong")]),
            (false, &[Code("~e0_.."), Soft("the fence: this partition is registered")]),
        ],
        &[Sure("All of these rows, or none.")],
    );
    column.late_arrow(&[Plain("2. the copy: on Azure, after the call has returned")]);
    column.partition(
        &[Soft("PartitionKey"), Code(copy[0])],
        &[(false, &[Code(copy[1]), Soft("the copy, within the write deadline")])],
        &[],
    );
    column.late_arrow(&[Plain("3. delete the dirty row, under its ETag")]);
    column.step(&[
        Strong("Nothing is open."),
        Soft("If the program stops before step 3, a worker finds the dirty row and does steps 2 and 3."),
    ]);
}
