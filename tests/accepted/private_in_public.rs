//! A public entity with private fields of private types.
#![deny(missing_docs, warnings)]

use entable::prelude::*;

/// An entity.
#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{kind}", row_key = "{id:06}")]
pub struct Employee {
    kind: Kind,
    id: u32,
    home: Option<Kind>,
}

#[derive(Debug, Clone, EdmEnum)]
enum Kind {
    Full,
}

/// Builds and reads the entity.
pub fn main() {
    let employee = Employee { kind: Kind::Full, id: 1, home: None };
    let _ = (Employee::primary().kind(employee.kind).id(employee.id), employee.home);
}
