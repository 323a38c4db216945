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
