//! `default`, `skip`, `json` and `Option`: properties that may be absent.

use entable::{Row, prelude::*};

use crate::properties;

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r")]
struct Employee {
    name: Option<String>,
    #[table(default)]
    age: i32,
    #[table(default = forty)]
    hours: i32,
    #[table(json, default)]
    tags: Vec<String>,
    #[table(skip)]
    cache: Option<u64>,
    #[table(skip, default = forty)]
    size: i32,
}

fn forty() -> i32 {
    40
}

#[test]
fn absent_properties_have_their_defaults() {
    let row = Row::build("p", "r").finish().unwrap();
    let employee = Employee::from_row(&row).unwrap();
    let tags = Vec::new();
    assert_eq!(employee, Employee { name: None, age: 0, hours: 40, tags, cache: None, size: 40 });
}

#[test]
fn skipped_and_absent_fields_write_nothing() {
    let employee =
        Employee { name: None, age: 1, hours: 2, tags: vec!["a".into()], cache: Some(1), size: 3 };
    let row = employee.to_row().unwrap();
    assert_eq!(properties(&row), ["EntityType", "Age", "Hours", "Tags"]);
    assert_eq!(row.get("Tags").unwrap().map(|v| v.to_value()), Some(Value::from("[\"a\"]")));
    assert_eq!(Employee::from_row(&row).unwrap().cache, None);
}

#[derive(TableEntity)]
#[table(name = "Strict", partition_key = "p", row_key = "r")]
struct Strict {
    age: i32,
}

#[test]
fn a_missing_property_is_a_decode_error_that_names_it() {
    let row = Row::build("p", "r").finish().unwrap();
    let error = Strict::from_row(&row).err().unwrap();
    assert_eq!((error.is_decode(), error.property()), (true, Some("Age")));
    assert!(Strict { age: 1 }.age == 1);
}
