//! Tests what filters determine about keys: bounds, cost classes, and keys as filters.

use std::ops::Bound;

use entable::{Comparison, CostClass, Filter, KeyBounds, Keys, Row};
use proptest::prelude::*;

use crate::{
    answers::rows,
    filter::{comparisons, filters},
    key::{legal_text, utf16_order},
};

fn contains(bounds: &(Bound<String>, Bound<String>), key: &str) -> bool {
    let above = match &bounds.0 {
        Bound::Unbounded => true,
        Bound::Included(lower) => utf16_order(lower, key).is_le(),
        Bound::Excluded(lower) => utf16_order(lower, key).is_lt(),
    };
    let below = match &bounds.1 {
        Bound::Unbounded => true,
        Bound::Included(upper) => utf16_order(key, upper).is_le(),
        Bound::Excluded(upper) => utf16_order(key, upper).is_lt(),
    };
    above && below
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bounds_contain_every_matching_row(filter in filters(), row in rows()) {
        let bounds = KeyBounds::of_filter(&filter);
        if filter.matches(&row).unwrap() {
            prop_assert!(contains(&bounds.partition, row.partition_key()), "{}", filter);
            prop_assert!(contains(&bounds.row, row.row_key()), "{}", filter);
            prop_assert!(!bounds.is_empty());
            prop_assert!(bounds.single_partition_key().is_none_or(|key| key == row.partition_key()));
            prop_assert!(bounds.one_row().is_none_or(|key| key == row.row_key()));
        }
    }

    #[test]
    fn bounds_of_key_conditions_are_exact(
        conditions in prop::collection::vec((comparisons(), "[ab]{0,2}"), 1..4),
        row_key in "[ab]{0,2}",
    ) {
        prop_assume!(conditions.iter().all(|(by, _)| *by != Comparison::Ne));
        let filter = Filter::all(
            conditions.into_iter().map(|(by, key)| Filter::compare("RowKey", by, key)),
        );
        let row = Row::build("P", &row_key).finish().unwrap();
        let bounds = KeyBounds::of_filter(&filter);
        prop_assert_eq!(contains(&bounds.row, &row_key), filter.matches(&row).unwrap());
        if contains(&bounds.row, &row_key) {
            prop_assert!(!bounds.is_empty());
        }
    }

    #[test]
    fn keys_select_exactly_their_rows(
        lower in legal_text(),
        upper in legal_text(),
        kind in 0_u8..4,
        row_key in legal_text(),
        longer: bool,
    ) {
        let row_key = if longer { [lower.as_str(), &row_key].concat() } else { row_key };
        let row = Row::build("P", &row_key).finish().unwrap();
        let keys = Keys::partition("P");
        let (keys, expected) = match kind {
            0 => (keys.clone().prefix(&lower), row_key.starts_with(&lower)),
            1 => (keys.clone().row(lower.as_str()), row_key == lower),
            2 => (
                keys.clone().rows(lower.as_str()..upper.as_str()),
                utf16_order(&lower, &row_key).is_le() && utf16_order(&row_key, &upper).is_lt(),
            ),
            _ => (keys.clone().row("x").prefix(""), true),
        };
        prop_assert_eq!(keys.filter().matches(&row).unwrap(), expected, "{}", keys.filter());
        let elsewhere = Row::build("Q", &row_key).finish().unwrap();
        prop_assert!(!keys.filter().matches(&elsewhere).unwrap());
        prop_assert_eq!(Filter::parse(&keys.filter().to_string()).unwrap(), keys.filter());
    }
}

#[test]
fn bounds_without_a_key_say_so() {
    let is_empty = |text| KeyBounds::of_filter(&Filter::parse(text).unwrap()).is_empty();
    for text in [
        // Nothing is below the empty key.
        "PartitionKey lt ''",
        "RowKey lt ''",
        "RowKey ge 'b' and RowKey lt 'b'",
        "RowKey gt 'b' and RowKey le 'b'",
        "RowKey ge 'c' and RowKey le 'b'",
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
    ] {
        assert!(is_empty(text), "{text}");
    }
    for text in ["", "RowKey le ''", "RowKey lt 'a'", "RowKey ge 'b' and RowKey le 'b'"] {
        assert!(!is_empty(text), "{text}");
    }
}

#[test]
fn classes_of_the_guide() {
    let cases = [
        ("(PartitionKey eq 'Sales') and (RowKey eq '2')", CostClass::Point),
        ("PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'", CostClass::Range),
        ("PartitionKey eq 'Sales' and LastName eq 'Smith'", CostClass::PartitionScan),
        ("LastName eq 'Jones'", CostClass::TableScan),
        ("RowKey eq '2'", CostClass::TableScan),
        ("PartitionKey ge 'A' and RowKey eq '2'", CostClass::TableScan),
        (
            "PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')",
            CostClass::PartitionScan,
        ),
        ("PartitionKey eq 'Sales' or RowKey eq '2'", CostClass::TableScan),
        ("not (PartitionKey eq 'Sales')", CostClass::TableScan),
        ("PartitionKey eq 'Sales' and RowKey ne '2'", CostClass::PartitionScan),
        ("PartitionKey eq 'Sales' and RowKey ge '2' and RowKey le '2'", CostClass::Point),
        ("PartitionKey eq 5 and RowKey eq '2'", CostClass::TableScan),
        ("", CostClass::TableScan),
    ];
    for (text, class) in cases {
        assert_eq!(CostClass::of_filter(&Filter::parse(text).unwrap()), class, "{text}");
    }
}
