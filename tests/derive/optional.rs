//! Tests `default`, `skip`, `json` and `Option`: properties that may be absent.

use entable::{EdmCow, EdmType, EdmValue, InvalidValue, Row, ValueRef, prelude::*};

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

type Maybe<T> = Option<T>;

/// A type of the user's own, always there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known(i32);

impl EdmValue for Known {
    const EDM: EdmType = EdmType::Int32;

    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(EdmCow::Owned(self.0.into()))
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        i32::from_edm(value).map(Self)
    }
}

#[derive(TableEntity)]
#[table(name = "Aliased", partition_key = "p", row_key = "r")]
struct Aliased {
    note: Maybe<String>,
    known: Known,
    /// The setter of this one stands where the removal of `known` would.
    remove_known: bool,
}

#[test]
fn an_option_under_another_name_is_removed() {
    let patch = Aliased::patch().note("a").remove_note().known(Known(1)).remove_known(true);
    let (set, removed) = entable::Patch::from(patch).into_changes().unwrap();
    assert_eq!(removed, ["Note"]);
    let set: Vec<&str> = set.iter().map(|(name, _)| name).collect();
    assert_eq!(set, ["Known", "RemoveKnown"]);
    let stored = Aliased { note: None, known: Known(1), remove_known: false };
    assert_eq!((stored.note, stored.known.0, stored.remove_known), (None, 1, false));
}
