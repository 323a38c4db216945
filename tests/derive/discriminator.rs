//! Tests `entity_type` and `discriminator`: how a row names its type.

use entable::{Row, ValueRef, entity::Recognition, prelude::*};

use crate::properties;

fn recognize<E: TableEntity>(row: &Row) -> Recognition {
    E::SCHEMA.recognize_as(row, E::SCHEMA.primary().unwrap()).unwrap()
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    entity_type = "Person",
    discriminator = "Kind"
)]
struct Employee {
    department: String,
    id: u32,
    entity_type: String,
}

#[test]
fn the_type_and_its_property_can_be_named() {
    let employee = Employee { department: "Sales".into(), id: 1, entity_type: "free".into() };
    let row = employee.to_row().unwrap();
    assert_eq!(row.get("Kind").unwrap(), Some(ValueRef::String("Person")));
    assert_eq!(row.get("EntityType").unwrap(), Some(ValueRef::String("free")));
    assert_eq!(recognize::<Employee>(&row), Recognition::Ours);
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "dept_{id:02}",
    discriminator = row_key
)]
struct Department {
    department: String,
    id: u32,
}

#[test]
fn the_key_alone_can_say_the_type() {
    let row = Department { department: "Sales".into(), id: 1 }.to_row().unwrap();
    assert!(properties(&row).is_empty());
    assert_eq!(recognize::<Department>(&row), Recognition::Ours);
    let other = Employee { department: "Sales".into(), id: 1, entity_type: String::new() };
    let found = recognize::<Department>(&other.to_row().unwrap());
    assert_eq!(found, Recognition::Unmarked);
}
