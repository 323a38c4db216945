//! Tests `extra`: properties that the struct does not know are kept.

use std::collections::BTreeMap;

use entable::{Bag, Row, ValueRef, prelude::*};

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r")]
struct Employee {
    age: i32,
    #[table(extra)]
    more: Bag,
}

#[test]
fn unknown_properties_come_back_as_they_were() {
    let mut row = Row::build("p", "r");
    row.put("EntityType", ValueRef::String("Employee"));
    row.put("Age", ValueRef::Int32(34));
    row.put("Shoe", ValueRef::Double(43.5));
    let row = row.finish().unwrap();
    let employee = Employee::from_row(&row).unwrap();
    assert_eq!(employee.age, 34);
    assert_eq!(employee.more.get("Shoe"), Some(&Value::Double(43.5)));
    assert_eq!(employee.more.len(), 1);
    assert_eq!(employee.to_row().unwrap().to_bag().unwrap(), row.to_bag().unwrap());
}

#[test]
fn a_name_that_the_service_refuses_is_refused() {
    let mut more = Bag::new();
    more.set("not a name", 1);
    let error = Employee { age: 1, more }.to_row().unwrap_err();
    assert!(error.is_invalid());
}

#[derive(TableEntity)]
#[table(name = "Maps", partition_key = "p", row_key = "r")]
struct Maps {
    #[table(extra)]
    more: BTreeMap<String, Value>,
}

#[test]
fn a_map_is_a_bag() {
    let more = BTreeMap::from([("A".to_owned(), Value::Int32(1))]);
    let row = Maps { more }.to_row().unwrap();
    assert_eq!(Maps::from_row(&row).unwrap().more.len(), 1);
}

#[test]
fn a_bag_holds_no_name_of_the_library() {
    for name in [
        "Src",
        "SrcP",
        "SrcR",
        "SrcT",
        "SrcC",
        "SrcF",
        "EntableMoving",
        "EntableMovedBy",
        "EntableMovingToEmail",
        "EntitySeal",
    ] {
        let mut more = Bag::new();
        more.set(name, "x");
        let error = Employee { age: 1, more }.to_row().unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.property(), Some(name));
    }
    let mut more = Bag::new();
    more.set("EntableMovie", "x");
    more.set("SrcX", "x");
    let employee = Employee { age: 1, more };
    assert_eq!(Employee::from_row(&employee.to_row().unwrap()).unwrap(), employee);
}

#[tokio::test]
async fn what_the_library_wrote_stays_beside_a_bag() {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let row = DynamicEntity::new("p", "r")
        .with_framework_names()
        .with("EntityType", "Employee")
        .with("Age", 34)
        .with("Src", "x")
        .with("EntitySeal", "y")
        .with("Shoe", 43);
    let rows = client.dynamic("Staff");
    rows.insert(&row).await.unwrap();
    let mut employee = staff.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(employee.more.len(), 1);
    employee.more.set("Shoe", 44);
    staff.replace(&employee).await.unwrap();
    let older = |employee: &mut Employee| {
        employee.age = 35;
        Ok(())
    };
    staff.update(Employee::primary(), older).await.unwrap();
    let row = rows.get("p", "r").await.unwrap().unwrap();
    assert_eq!((row.i32("Shoe").unwrap(), row.i32("Age").unwrap()), (44, 35));
    assert_eq!((row.str("Src").unwrap(), row.str("EntitySeal").unwrap()), ("x", "y"));
}
