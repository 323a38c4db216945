//! Declarations of deprecated types and with deprecated parts, which derive without a warning.
#![deny(warnings)]
#![allow(dead_code)]
#![forbid(unsafe_code)]

/// Types that are kept for those who still use them.
#[allow(missing_docs)]
pub mod old {
    use entable::prelude::*;

    #[deprecated = "write `Employee`"]
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "{department}", row_key = "person_{id:06}")]
    pub struct Person {
        pub department: String,
        pub id: u32,
        pub name: String,
        #[allow(deprecated)]
        #[table(flatten)]
        pub home: Address,
        #[allow(deprecated)]
        pub level: Option<Level>,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    pub struct Employee {
        pub department: String,
        #[deprecated = "write `number`"]
        pub id: u32,
        #[allow(deprecated)]
        #[table(flatten)]
        pub home: Address,
        #[allow(deprecated)]
        pub level: Level,
        #[deprecated]
        #[table(series)]
        pub sent: [u32; 4],
    }

    #[deprecated]
    #[derive(Debug, Clone, PartialEq, Properties)]
    pub struct Address {
        #[deprecated]
        pub city: String,
    }

    #[deprecated]
    #[derive(Debug, Clone, PartialEq, EdmEnum)]
    pub enum Level {
        #[deprecated]
        Low,
        High,
    }

    #[deprecated]
    #[derive(Debug, Clone, PartialEq, KeyPart)]
    pub struct Badge {
        #[deprecated]
        pub number: u32,
    }

    #[deprecated]
    #[derive(Debug, Clone, PartialEq, Projection)]
    #[table(of = Employee)]
    pub struct Contact {
        pub department: String,
        #[deprecated]
        pub sent: [u32; 4],
    }

    #[deprecated]
    #[derive(Debug, EntitySet)]
    pub enum Rows {
        #[deprecated]
        Employee(Employee),
    }

    #[allow(deprecated)]
    #[derive(Debug, EntitySet)]
    pub enum AllRows {
        Person(Person),
        Employee(Employee),
    }

    #[allow(deprecated)]
    #[derive(Debug, EntitySet)]
    pub struct Page {
        #[table(many)]
        pub people: Vec<Person>,
        #[deprecated]
        #[table(other)]
        pub others: Vec<DynamicEntity>,
    }

    #[deprecated]
    #[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
    #[table(unauthenticated)]
    pub struct Welcome {
        #[deprecated]
        pub id: u32,
    }
}

/// The types are used by those who allow it.
#[allow(deprecated, reason = "the program keeps them")]
#[allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that panics has found something"
)]
pub fn main() {
    use entable::prelude::*;

    let person = old::Person {
        department: "Sales".into(),
        id: 1,
        name: "Jones".into(),
        home: old::Address { city: "Bonn".into() },
        level: Some(old::Level::Low),
    };
    let row = person.to_row().expect("the person has a row");
    assert_eq!(old::Person::from_row(&row).expect("the row is of a person"), person);
}
