//! Draws how a verb becomes a request.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong},
};

pub(super) const TITLE: &str = "How a call becomes a request: entity, rows, plan, batch, backend";

pub(super) fn draw(column: &mut Column) {
    column.step(&[Strong("Entity"), Code("Employee { id: 223, .. }"), Soft("your struct")]);
    column.arrow(&[Code("entity"), Plain("derives the entity's rows from its fields")]);
    column.partition(
        &[Strong("Rows")],
        &[
            (true, &[Code("Sales, empid_000223"), Soft("the primary")]),
            (false, &[Code("Sales, email_jonesj@.."), Soft("a local copy")]),
            (false, &[Code("~e2_empid_000223"), Soft("open work, if there is a remote copy")]),
        ],
        &[],
    );
    column.arrow(&[
        Code("plan"),
        Plain("compares them with the rows that were read. Pure: no request."),
    ]);
    column.step(&[
        Strong("Plan"),
        Plain("the operations of one transaction: insert, replace, merge, delete, each with its condition"),
        Soft("at most 100 operations in 4 MiB, of one partition"),
    ]);
    column.arrow(&[Code("store"), Plain("encrypts and seals each row for its keys")]);
    column.step(&[Strong("Batch"), Plain("stored rows only: a backend knows no entities")]);
    column.arrow(&[Code("backend/layer"), Plain("retries, counts, traces")]);
    column.step(&[Strong("Backend"), Plain("memory, a file, or the service: one request")]);
}
