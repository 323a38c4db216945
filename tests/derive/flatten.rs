//! Tests `flatten`: structs as several properties.

use entable::prelude::*;

use crate::properties;

#[derive(Debug, Clone, PartialEq, Properties)]
struct Address {
    city: String,
    zip: Option<String>,
    #[table(flatten(prefix = "At"))]
    geo: Option<Geo>,
    #[table(json, default)]
    tags: Vec<String>,
    #[table(skip)]
    cached: u8,
}

#[derive(Debug, Clone, PartialEq, Properties)]
#[table(rename_all = "lowercase")]
struct Geo {
    x: f64,
    #[table(rename = "Y")]
    y: f64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "r")]
struct Employee {
    #[table(flatten)]
    home: Address,
    #[table(flatten(prefix = "HomeOffice"))]
    office: Option<Address>,
}

fn address() -> Address {
    let geo = Some(Geo { x: 1.0, y: 2.0 });
    Address { city: "Bonn".into(), zip: None, geo, tags: Vec::new(), cached: 0 }
}

#[test]
fn nested_structs_are_properties_under_their_prefixes() {
    let office = Address { geo: None, ..address() };
    let employee = Employee { home: address(), office: Some(office) };
    let row = employee.to_row().unwrap();
    assert_eq!(
        properties(&row),
        [
            "EntityType",
            "HomeCity",
            "HomeAtx",
            "HomeAtY",
            "HomeTags",
            "HomeOfficeCity",
            "HomeOfficeTags"
        ]
    );
    assert_eq!(Employee::from_row(&row).unwrap(), employee);
}

#[test]
fn an_optional_struct_may_be_absent_altogether() {
    let employee = Employee { home: address(), office: None };
    let row = employee.to_row().unwrap();
    assert_eq!(Employee::from_row(&row).unwrap(), employee);
}

#[test]
fn columns_of_nested_structs_are_reached_through_their_fields() {
    let filter = Employee::OFFICE.at(Address::CITY).eq("Bonn").into_filter().unwrap();
    assert_eq!(filter.to_string(), "HomeOfficeCity eq 'Bonn'");
    let filter = Employee::HOME.within(Address::GEO).at(Geo::Y).gt(1.0).into_filter().unwrap();
    assert_eq!(filter.to_string(), "HomeAtY gt 1.0");
}

#[tokio::test]
async fn a_column_two_structs_deep_is_named_step_by_step_and_finds_its_row() {
    let filter = || Employee::HOME.at(Address::GEO).at(Geo::Y).gt(1.0);
    assert_eq!(filter().into_filter().unwrap().to_string(), "HomeAtY gt 1.0");
    let table = Client::memory().table::<Employee>();
    table.create().await.unwrap();
    let employee = Employee { home: address(), office: None };
    table.insert(&employee).await.unwrap();
    let found = table.query(Employee::primary()).filter(filter()).collect().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(*found[0], employee);
    let above = Employee::HOME.at(Address::GEO).at(Geo::Y).gt(2.0);
    assert!(table.query(Employee::primary()).filter(above).collect().await.unwrap().is_empty());
}

#[test]
fn a_missing_property_is_named_with_its_prefixes() {
    let row = entable::Row::build("p", "r").finish().unwrap();
    let error = Employee::from_row(&row).unwrap_err();
    assert_eq!((error.is_decode(), error.property()), (true, Some("HomeCity")));
}

#[tokio::test]
async fn a_patch_of_a_struct_removes_what_its_value_lacks() {
    let table = Client::memory().table::<Employee>();
    table.create().await.unwrap();
    let full = Address { zip: Some("53111".into()), ..address() };
    let spare = Address { geo: None, city: "Kiel".into(), ..address() };
    table.insert(&Employee { home: full.clone(), office: Some(full.clone()) }).await.unwrap();

    let patch = Employee::patch().home(spare.clone()).office(Some(spare.clone()));
    table.patch_at(Employee::primary(), patch).await.unwrap();
    let read = table.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(*read, Employee { home: spare.clone(), office: Some(spare.clone()) });

    let patch = Employee::patch().office(None).home(full.clone());
    table.patch_at(Employee::primary(), patch).await.unwrap();
    let read = table.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(*read, Employee { home: full.clone(), office: None });

    // The last value of a field counts.
    let patch = Employee::patch().office(None).office(Some(full.clone())).home(spare.clone());
    table.patch(&read, patch.home(full.clone())).await.unwrap();
    let read = table.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(*read, Employee { home: full.clone(), office: Some(full.clone()) });
    let patch = Employee::patch().home(full.clone()).home(spare.clone());
    table.patch_at(Employee::primary(), patch.office(None)).await.unwrap();
    let read = table.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(*read, Employee { home: spare, office: None });
}

#[tokio::test]
async fn a_patch_to_none_alone_removes_the_struct() {
    let table = Client::memory().table::<Employee>();
    table.create().await.unwrap();
    table.insert(&Employee { home: address(), office: Some(address()) }).await.unwrap();
    table.patch_at(Employee::primary(), Employee::patch().office(None)).await.unwrap();
    let read = table.get(Employee::primary()).await.unwrap().unwrap();
    assert_eq!(*read, Employee { home: address(), office: None });
}
