//! Tests private types in every visibility, and derives inside functions.

use entable::prelude::*;

mod inner {
    use entable::prelude::*;

    #[derive(Clone, EdmEnum)]
    enum Hidden {
        One,
    }

    #[derive(TableEntity)]
    #[table(name = "Inner", partition_key = "{hidden}", row_key = "{id}")]
    pub(super) struct Visible {
        hidden: Hidden,
        pub(super) id: u32,
        pub(in crate::private) more: i32,
    }

    pub(super) fn key() -> String {
        let _ = Visible { hidden: Hidden::One, id: 1, more: 2 }.to_row();
        Visible::primary().hidden(Hidden::One).keys().filter().to_string()
    }
}

#[test]
fn columns_are_as_visible_as_their_fields() {
    assert_eq!(inner::key(), "PartitionKey eq 'One'");
    assert_eq!((inner::Visible::ID.name(), inner::Visible::MORE.name()), ("Id", "More"));
}

#[test]
fn an_entity_may_stand_in_a_function() {
    #[derive(TableEntity)]
    #[table(name = "Local", partition_key = "p", row_key = "r")]
    struct Local {
        text: String,
    }

    let row = Local { text: "t".into() }.to_row().unwrap();
    assert_eq!(Local::from_row(&row).unwrap().text, "t");
    assert_eq!(Local::primary().keys().as_point(), Some(("p", "r")));
}

macro_rules! entity {
    ($name:ident { $($field:ident: $type:ty),* }) => {
        #[derive(TableEntity)]
        #[table(name = "Made", partition_key = "{a}", row_key = "{b}")]
        struct $name { $($field: $type),* }
    };
}

entity!(Made { a: String, b: u32, c: Option<i32> });

#[test]
fn an_entity_may_be_made_by_a_macro() {
    let row = Made { a: "a".into(), b: 1, c: None }.to_row().unwrap();
    assert_eq!(Made::from_row(&row).unwrap().c, None);
    let _ = Made::patch().remove_c();
}
