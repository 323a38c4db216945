//! Compares the evaluation of filters on rows with an evaluator written from the reference.

use std::cmp::Ordering;

use entable::{Comparison, EdmType, Filter, Row, Value, ValueRef};
use proptest::prelude::*;

use crate::{
    edm::{ticks, values},
    filter::{comparisons, filters},
    key::{legal_text, utf16_order},
};

prop_compose! {
    /// Rows whose names and values meet those of the filters.
    pub(crate) fn rows()(
        partition_key in prop_oneof!["[ab]{0,2}", legal_text()],
        row_key in prop_oneof!["[ab]{0,2}", legal_text()],
        properties in prop::collection::btree_map("[ABC]", values(), 0..4),
        timestamp in prop::option::of(ticks()),
    ) -> Row {
        let mut builder = Row::build(&partition_key, &row_key);
        properties.iter().for_each(|(name, value)| builder.put(name, value.as_ref()));
        match timestamp {
            Some(at) => builder.finish_at(at).unwrap(),
            None => builder.finish().unwrap(),
        }
    }
}

/// The answer of the reference, written from it and not from the code.
fn naive(filter: &Filter, row: &Row) -> bool {
    let stored = |name: &str| match name {
        "PartitionKey" => Some(Value::from(row.partition_key())),
        "RowKey" => Some(Value::from(row.row_key())),
        "Timestamp" => row.timestamp().map(Value::from),
        _ => row.to_bag().unwrap().get(name).cloned(),
    };
    match filter {
        Filter::Constant(constant) => *constant,
        Filter::Property(name) => stored(name) == Some(Value::Boolean(true)),
        Filter::Not(filter) => !naive(filter, row),
        Filter::Compare { property, comparison, value } => match stored(property) {
            // 4.4: every comparison with a missing property is false.
            None => false,
            Some(stored) => naive_compare(&stored, *comparison, value),
        },
        Filter::And(all) => all.iter().all(|filter| naive(filter, row)),
        Filter::Or(any) => any.iter().any(|filter| naive(filter, row)),
        _ => unreachable!("a new kind of filter"),
    }
}

/// 4.3, as a table of types and their common one.
fn naive_compare(stored: &Value, comparison: Comparison, literal: &Value) -> bool {
    use EdmType::{Double, Int32, Int64};
    let order = match (stored.edm_type(), literal.edm_type()) {
        (a, b) if a == b => naive_order(stored, literal),
        (Int64 | Double, Int32) | (Double, Int64) => exact_order(stored, literal),
        _ => Some(Ordering::Less),
    };
    match comparison {
        Comparison::Eq => order == Some(Ordering::Equal),
        Comparison::Ne => order != Some(Ordering::Equal),
        Comparison::Gt => order.is_some_and(Ordering::is_gt),
        Comparison::Ge => order.is_some_and(Ordering::is_ge),
        Comparison::Lt => order.is_some_and(Ordering::is_lt),
        Comparison::Le => order.is_some_and(Ordering::is_le),
    }
}

fn naive_order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(utf16_order(a, b)),
        (Value::Binary(a), Value::Binary(b)) => Some(a.to_vec().cmp(&b.to_vec())),
        // Ordinal on the canonical text.
        (Value::Guid(a), Value::Guid(b)) => Some(a.to_string().cmp(&b.to_string())),
        _ => exact_order(a, b),
    }
}

/// Numbers by their exact values: a double as mantissa and exponent of two.
fn exact_order(a: &Value, b: &Value) -> Option<Ordering> {
    let whole = |value: &Value| match value {
        Value::Boolean(v) => i128::from(*v),
        Value::Int32(v) => i128::from(*v),
        Value::Int64(v) => i128::from(*v),
        Value::DateTime(v) => i128::from(v.get()),
        other => panic!("{other:?} is no whole number"),
    };
    let Value::Double(a) = a else { return Some(whole(a).cmp(&whole(b))) };
    if a.is_nan() {
        return None;
    }
    if a.abs() >= 2_f64.powi(100) {
        return Some(if *a > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    // Exact: below 2^100 the floor of a double is a whole number that an i128 holds.
    let floor = a.floor();
    let order = (floor as i128).cmp(&whole(b));
    Some(order.then(if *a > floor { Ordering::Greater } else { Ordering::Equal }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_answer_is_the_references(filter in filters(), row in rows()) {
        prop_assert_eq!(filter.matches(&row).unwrap(), naive(&filter, &row), "{} {:?}", filter, row.to_bag());
    }

    #[test]
    fn one_comparison_is_the_references(stored in values(), by in comparisons(), literal in values()) {
        let mut builder = Row::build("P", "R");
        builder.put("A", stored.as_ref());
        let row = builder.finish().unwrap();
        let filter = Filter::compare("A", by, literal.clone());
        prop_assert_eq!(
            filter.matches(&row).unwrap(),
            naive_compare(&stored, by, &literal),
            "{:?} {:?} {:?}", stored, by, literal
        );
    }

    #[test]
    fn doubles_against_whole_numbers_are_exact(
        whole in prop_oneof![any::<i64>(), Just(i64::MAX), Just(i64::MIN)],
        near in -3_i64..=3,
        by in comparisons(),
    ) {
        // The doubles next to a whole number that none of them holds.
        let double = f64::from_bits((whole as f64).to_bits().wrapping_add_signed(near));
        let (stored, literal) = (Value::Double(double), Value::Int64(whole));
        let mut builder = Row::build("P", "R");
        builder.put("A", stored.as_ref());
        let row = builder.finish().unwrap();
        prop_assert_eq!(
            Filter::compare("A", by, literal.clone()).matches(&row).unwrap(),
            naive_compare(&stored, by, &literal)
        );
    }
}

#[test]
fn the_comparisons_of_all_48_pairs_of_types() {
    let at = "2014-08-22T00:50:32Z".parse::<entable::Ticks>().unwrap();
    let of_each_type = || {
        [
            Value::Boolean(true),
            Value::Int32(5),
            Value::Int64(5),
            Value::Double(5.0),
            Value::from("5"),
            Value::DateTime(at),
            Value::Guid(uuid::Uuid::from_u128(5)),
            Value::from(vec![5_u8]),
        ]
    };
    let widens = [
        (EdmType::Int64, EdmType::Int32),
        (EdmType::Double, EdmType::Int32),
        (EdmType::Double, EdmType::Int64),
    ];
    for stored in of_each_type() {
        let mut builder = Row::build("P", "R");
        builder.put("A", stored.as_ref());
        let row = builder.finish().unwrap();
        for literal in of_each_type() {
            let types = (stored.edm_type(), literal.edm_type());
            let equal = types.0 == types.1 || widens.contains(&types);
            let answers = Comparison::ALL
                .map(|by| Filter::compare("A", by, literal.clone()).matches(&row).unwrap());
            // eq, ne, gt, ge, lt, le: a mismatch is less than the literal.
            let expected = if equal {
                [true, false, false, true, false, true]
            } else {
                [false, true, false, false, true, true]
            };
            assert_eq!(answers, expected, "{types:?}");
        }
    }
}

#[test]
fn a_missing_property_answers_nothing_and_not_turns_it_round() {
    let row = Row::build("P", "R").finish().unwrap();
    for by in Comparison::ALL {
        let filter = Filter::compare("A", by, 5);
        assert!(!filter.matches(&row).unwrap(), "{by:?}");
        assert!((!filter).matches(&row).unwrap(), "{by:?}");
    }
    assert!(!Filter::Property("A".into()).matches(&row).unwrap());
    assert!(!Filter::eq("Timestamp", entable::Ticks::MIN).matches(&row).unwrap());
}

#[test]
fn a_property_alone_is_true_where_it_is_a_true_boolean() {
    for (value, expected) in [
        (ValueRef::Boolean(true), true),
        (ValueRef::Boolean(false), false),
        (ValueRef::Int32(1), false),
        (ValueRef::String("true"), false),
    ] {
        let row = Row::build("P", "R").with("A", value).unwrap().finish().unwrap();
        assert_eq!(Filter::parse("A").unwrap().matches(&row).unwrap(), expected);
    }
}

#[test]
fn not_a_number_is_only_unequal() {
    for (stored, literal) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
        let row = Row::build("P", "R").with("A", ValueRef::Double(stored)).unwrap();
        let row = row.finish().unwrap();
        let answers =
            Comparison::ALL.map(|by| Filter::compare("A", by, literal).matches(&row).unwrap());
        assert_eq!(answers, [false, true, false, false, false, false]);
    }
}
