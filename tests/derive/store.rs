//! Tests `store`: a field of a key that is a property as well.

use entable::{ValueRef, prelude::*};

use crate::properties;

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    #[table(store)]
    department: String,
    #[table(store, rename = "Number")]
    id: u32,
}

#[test]
fn a_stored_part_is_a_property_and_can_be_filtered_as_one() {
    let employee = Employee { department: "Sales".into(), id: 5 };
    let row = employee.to_row().unwrap();
    assert_eq!(properties(&row), ["EntityType", "Department", "Number"]);
    assert_eq!(row.get("Number").unwrap(), Some(ValueRef::Int64(5)));
    assert_eq!(Employee::from_row(&row).unwrap(), employee);
    let filter = Employee::ID.lt(5_u32).into_filter().unwrap();
    assert_eq!(filter.to_string(), "Number lt 5L");
}
