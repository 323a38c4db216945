//! Tests that generated code names everything by its path, without a prelude.
#![no_implicit_prelude]
#![allow(dead_code)]

use ::entable::{EdmEnum, Projection, Properties, TableEntity};
use ::std::{assert_eq, result::Result::Ok, vec::Vec};

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department:lower}_{id:bucket(4)}",
    row_key = "{born:%Y%m}_{rank:desc}_{kind}_{id:06}",
    validate = validate
)]
struct Employee {
    department: ::std::string::String,
    id: u32,
    rank: i64,
    born: ::time::Date,
    kind: Kind,
    salary: ::std::option::Option<f64>,
    #[table(json)]
    tags: Vec<::std::string::String>,
    #[table(flatten)]
    home: Address,
    #[table(default)]
    notes: ::std::string::String,
    #[table(skip)]
    cache: u8,
    #[table(extra)]
    others: ::entable::Bag,
}

#[derive(::std::clone::Clone, EdmEnum)]
enum Kind {
    Full,
}

#[derive(Properties)]
struct Address {
    city: ::std::string::String,
    #[table(flatten)]
    geo: Point,
    #[table(json, default)]
    tags: Vec<u8>,
}

#[derive(Properties)]
struct Point {
    x: f64,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    salary: ::std::option::Option<f64>,
    kind: Kind,
}

fn validate(_: &Employee) -> ::std::result::Result<(), ::entable::Error> {
    Ok(())
}

fn employee() -> Employee {
    Employee {
        department: ::std::string::String::new(),
        id: 1,
        rank: 2,
        born: ::time::Date::MIN,
        kind: Kind::Full,
        salary: ::std::option::Option::None,
        tags: Vec::new(),
        home: Address {
            city: ::std::string::String::new(),
            geo: Point { x: 0.5 },
            tags: Vec::new(),
        },
        notes: ::std::string::String::new(),
        cache: 3,
        others: ::entable::Bag::new(),
    }
}

#[test]
fn a_row_and_back() {
    // The year of `Date::MIN` is before the year 1, so that the row is refused.
    assert_eq!(TableEntity::to_row(&employee()).is_err(), true);
    assert_eq!(TableEntity::check(&employee()).is_ok(), true);
    let contact = <Contact as ::entable::FromRow>::columns(::std::option::Option::None);
    assert_eq!(contact.is_some(), true);
}
