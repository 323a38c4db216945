//! Tests `#[derive(Projection)]`: some of an entity's fields.

use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(rename = "Mail")]
    email: String,
    #[table(json)]
    tags: Vec<String>,
    #[table(skip)]
    cache: u8,
    r#type: Option<String>,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Contact {
    department: String,
    email: String,
    tags: Vec<String>,
    r#type: Option<String>,
}

#[test]
fn a_projection_reads_its_fields_from_keys_and_properties() {
    let employee = Employee {
        department: "Sales".into(),
        id: 1,
        email: "a@b".into(),
        tags: vec!["t".into()],
        cache: 1,
        r#type: None,
    };
    assert_eq!(employee.cache, 1);
    let contact = Contact::from_row(&employee.to_row().unwrap()).unwrap();
    let Employee { department, email, tags, r#type, .. } = employee;
    assert_eq!(contact, Contact { department, email, tags, r#type });
}

#[test]
fn a_projection_selects_properties_and_leaves_out_keys() {
    assert_eq!(Contact::columns(None).unwrap(), ["Mail", "Tags", "Type"]);
}
