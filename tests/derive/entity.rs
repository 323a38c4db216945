//! Tests the entity of the design guide as a whole.

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub age: i32,
    pub salary: Option<f64>,
    #[table(json)]
    pub tags: Vec<String>,
    #[table(flatten)]
    pub home: Address,
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Address {
    pub city: String,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    first_name: String,
    home: Address,
}

fn don() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 223,
        first_name: "Don".into(),
        age: 34,
        salary: None,
        tags: vec!["a".into()],
        home: Address { city: "Berlin".into() },
    }
}

#[test]
fn a_row_and_back() -> Result<(), Error> {
    let row = don().to_row()?;
    assert_eq!((row.partition_key(), row.row_key()), ("Sales", "empid_000223"));
    assert_eq!(Employee::from_row(&row)?, don());
    let contact = Contact::from_row(&row)?;
    let home = Address { city: "Berlin".into() };
    assert_eq!(contact, Contact { id: 223, first_name: "Don".into(), home });
    Ok(())
}

#[test]
fn fields_that_the_keys_give_back_are_not_stored() -> Result<(), Error> {
    let row = don().to_row()?;
    let bag = row.to_bag()?;
    let names: Vec<&str> = bag.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["EntityType", "FirstName", "Age", "Tags", "HomeCity"]);
    Ok(())
}

#[test]
fn paths_become_the_filters_of_the_guide() {
    let keys = Employee::primary().department("Sales").id_range(100..=199).keys();
    assert_eq!(
        keys.filter().to_string(),
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')"
    );
    let keys = Employee::primary().department("Sales").keys();
    assert_eq!(
        keys.filter().to_string(),
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_') and (RowKey lt 'empid`')"
    );
}

#[test]
fn columns_are_typed_and_name_their_properties() -> Result<(), Error> {
    let filter = (Employee::AGE.ge(30)
        & !Employee::HOME.at(Address::CITY).eq("Berlin")
        & Employee::SALARY.lt(1.0))
    .into_filter()?;
    assert_eq!(
        filter.to_string(),
        "(Age ge 30) and (not (HomeCity eq 'Berlin')) and (Salary lt 1.0)"
    );
    Ok(())
}

#[test]
fn a_projection_selects_its_properties() {
    let columns = Contact::columns(None).unwrap_or_default();
    assert_eq!(columns, ["FirstName", "HomeCity"]);
}

#[test]
fn a_patch_sets_and_removes() -> Result<(), Error> {
    let patch = Employee::patch()
        .age(35)
        .tags(vec!["b".into()])
        .home(Address { city: "Bonn".into() })
        .remove_salary();
    let (set, removed) = entable::Patch::from(patch).into_changes()?;
    let names: Vec<&str> = set.iter().map(|(name, _)| name).collect();
    assert_eq!((names, removed), (vec!["Age", "Tags", "HomeCity"], vec!["Salary".into()]));
    Ok(())
}
