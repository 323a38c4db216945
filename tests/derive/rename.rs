//! Tests `rename` and `rename_all`: names of properties.

use entable::prelude::*;

use crate::properties;

macro_rules! cases {
    ($($test:ident: $name:literal, $case:literal => $expected:expr;)*) => {
        $(#[test]
        fn $test() {
            #[derive(TableEntity)]
            #[table(name = $name, partition_key = "p", row_key = "r", rename_all = $case)]
            struct Named {
                first_name: i32,
                id2: i32,
                #[table(rename = "other")]
                renamed: i32,
            }

            let row = Named { first_name: 1, id2: 2, renamed: 3 }.to_row().unwrap();
            assert_eq!(properties(&row).get(1..).unwrap_or_default(), $expected);
            assert_eq!(Named::from_row(&row).unwrap().id2, 2);
        })*
    };
}

cases! {
    pascal: "Names", "PascalCase" => ["FirstName", "Id2", "other"];
    camel: "Names", "camelCase" => ["firstName", "id2", "other"];
    snake: "Names", "snake_case" => ["first_name", "id2", "other"];
    screaming: "Names", "SCREAMING_SNAKE_CASE" => ["FIRST_NAME", "ID2", "other"];
    lower: "Names", "lowercase" => ["firstname", "id2", "other"];
    upper: "Names", "UPPERCASE" => ["FIRSTNAME", "ID2", "other"];
    verbatim: "Names", "none" => ["first_name", "id2", "other"];
}

#[tokio::test]
async fn names_have_the_letters_and_marks_of_every_script() {
    #[derive(Debug, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "r")]
    struct Named {
        #[table(rename = "นามสกุล")]
        family_name: String,
        #[table(rename = "café")]
        place: i32,
    }

    let named = Named { family_name: "Srisai".into(), place: 1 };
    let row = named.to_row().unwrap();
    assert_eq!(properties(&row), ["EntityType", "นามสกุล", "cafe\u{301}"]);
    assert_eq!(Named::from_row(&row).unwrap(), named);
    let filter = || Named::PLACE.eq(1);
    assert_eq!(filter().into_filter().unwrap().to_string(), "cafe\u{301} eq 1");
    let table = Client::memory().table::<Named>();
    table.create().await.unwrap();
    table.insert(&named).await.unwrap();
    for found in [filter(), Named::FAMILY_NAME.eq("Srisai")] {
        assert_eq!(table.query(Named::primary()).filter(found).collect().await.unwrap().len(), 1);
    }
    // A number that is no decimal digit continues no name.
    assert!(Filter::parse("m\u{b2} eq 1").is_err());
    assert!(Filter::parse("cafe\u{301} eq 1").is_ok());
}
