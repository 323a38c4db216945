//! Settings whose values a macro hands on as fragments: those of versions, dated tables, wide entities, blobs,
//! sets, messages and enums.
#![deny(warnings)]
#![allow(dead_code)]
#![forbid(unsafe_code)]

use entable::prelude::*;

macro_rules! declare {
    (
        $partition_key:literal, $row_key:literal, $by_name:literal, $two:literal, $word:literal, $case:literal,
        $dated:literal, $age:literal, $crate_name:literal, $previous:path, $is_named:expr, $time:ty, $bag:ty,
        $blob:ty, $slots:ty, $home:ty, $boxed:ty, $maybe:ty, $many:ty, $others:ty, $other:ty
    ) => {
        #[derive(Debug, TableEntity)]
        #[table(
            name = $dated,
            partition_key = $partition_key,
            row_key = $row_key,
            discriminator = $word,
            rename_all = $case
        )]
        struct Visit {
            department: String,
            id: u32,
            at: $time,
        }

        #[derive(Debug, TableEntity)]
        #[table(name = "Years", partition_key = $partition_key, row_key = $row_key, wide)]
        struct Year {
            department: String,
            id: u32,
            first: u32,
            #[table(part = $two, rename = $word)]
            second: u32,
        }

        #[derive(Debug, TableEntity)]
        #[table(
            name = "Staff",
            partition_key = $partition_key,
            row_key = $row_key,
            version = $two,
            upgrade_from($previous),
            entity_type = $word,
            index(ByName, table = "Names", partition_key = $by_name, row_key = $row_key, unique, when = $is_named),
            list(Named, partition_key = $by_name, row_key = "all", in_blob)
        )]
        struct Second {
            department: String,
            id: u32,
            name: String,
            #[table(encrypt, blind(chars = $two))]
            ssn: String,
            #[table(blob)]
            photo: $blob,
            #[table(series)]
            sent: $slots,
            #[table(flatten(prefix = $word))]
            home: $home,
            #[table(extra)]
            more: $bag,
        }

        #[derive(Debug, EntitySet)]
        #[table(crate = $crate_name)]
        enum Rows {
            First($boxed),
            #[table(other)]
            Other($other),
        }

        #[derive(Debug, EntitySet)]
        struct Page {
            #[table(one)]
            first: $maybe,
            #[table(many)]
            cards: $many,
            #[table(other)]
            others: $others,
        }

        #[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
        #[table(name = $word, version = $two, unauthenticated, expires = $age)]
        struct Welcome {
            id: u32,
        }

        #[derive(Debug, EdmEnum)]
        #[table(rename_all = $case)]
        enum Level {
            #[table(rename = $word)]
            Low,
            VeryHigh,
        }
    };
}

#[derive(Debug, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Word"
)]
struct First {
    department: String,
    id: u32,
}

#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "card_{id:06}")]
struct Card {
    department: String,
    id: u32,
}

#[derive(Debug, Properties)]
struct Home {
    city: String,
}

declare!(
    "{department}",
    "empid_{id:06}",
    "{name}",
    2,
    "Word",
    "camelCase",
    "Visits{at:%Y%m}",
    "7d",
    "::entable",
    First,
    Second::is_named,
    time::OffsetDateTime,
    Bag,
    Option<Blob>,
    [Option<u32>; 2],
    Home,
    Box<First>,
    Option<First>,
    Vec<Card>,
    Vec<DynamicEntity>,
    DynamicEntity
);

impl From<First> for Second {
    fn from(First { department, id }: First) -> Self {
        Self {
            department,
            id,
            name: String::new(),
            ssn: String::new(),
            photo: None,
            sent: [None; 2],
            home: Home { city: String::new() },
            more: Bag::default(),
        }
    }
}

impl Second {
    fn is_named(&self) -> bool {
        !self.name.is_empty()
    }
}

fn names(schema: &'static entable::entity::Schema) -> Vec<&'static str> {
    schema.columns.iter().map(|column| column.name).collect()
}

/// Every setting has the value that the fragment holds.
pub(crate) fn main() {
    let second = names(Second::SCHEMA);
    for name in ["Ssn", "Sent1", "Word"] {
        assert!(second.contains(&name), "{name} is not in {second:?}");
    }
    assert_eq!((Second::SCHEMA.version, Second::SCHEMA.entity_type), (2, "Word"));
    assert!(names(Year::SCHEMA).contains(&"Word"));
    assert!(names(Visit::SCHEMA).contains(&"at"));
    let page = Page { first: None, cards: Vec::new(), others: Vec::new() };
    assert!(page.first.is_none() && page.cards.is_empty() && page.others.is_empty());
}
