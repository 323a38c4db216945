//! Filters: text there and back, the service's answers, key bounds, and depth.

use std::{cmp::Ordering, ops::Bound};

use entable::{Comparison, CostClass, EdmType, Filter, KeyBounds, Keys, Row, Value, ValueRef};
use proptest::prelude::*;

use crate::{
    edm::{ticks, values},
    key::{legal_text, utf16_order},
};

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ABC]",
        1 => prop::sample::select(vec!["PartitionKey", "RowKey", "Timestamp"]).prop_map(str::to_owned),
        // Words that mean something elsewhere in the sentence.
        1 => prop::sample::select(vec!["and", "or", "eq", "le", "datetime", "guid", "X", "L", "E1"])
            .prop_map(str::to_owned),
        1 => "[A-Za-z_\u{e9}][A-Za-z0-9_\u{e9}]{0,6}"
            .prop_filter("reserved", |name| Filter::eq(name.as_str(), 1).check().is_ok()),
    ]
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    prop::sample::select(Comparison::ALL.to_vec())
}

fn leaves() -> impl Strategy<Value = Filter> {
    prop_oneof![
        6 => (names(), comparisons(), values()).prop_map(|(name, by, value)| Filter::compare(name, by, value)),
        2 => (
            prop::sample::select(vec!["PartitionKey", "RowKey"]),
            comparisons(),
            prop_oneof!["[ab]{0,2}", legal_text()],
        )
            .prop_map(|(name, by, value)| Filter::compare(name, by, value)),
        1 => names().prop_map(Filter::Property),
        1 => any::<bool>().prop_map(Filter::Constant),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    leaves().prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::all),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::any),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a & b),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a | b),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and_all(b)),
            inner.prop_map(|filter| !filter),
        ]
    })
}

prop_compose! {
    /// Rows whose names and values meet those of the filters.
    fn rows()(
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
    fn what_is_printed_is_read_back(filter in filters()) {
        let text = filter.to_string();
        prop_assert_eq!(&Filter::parse(&text).unwrap(), &filter);
        prop_assert_eq!(text, filter.clone().to_string());
        filter.check().unwrap();
    }

    #[test]
    fn every_literal_is_read_back(value in values(), by in comparisons()) {
        let filter = Filter::compare("A", by, value);
        prop_assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
    }

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

    #[test]
    fn bounds_contain_every_matching_row(filter in filters(), row in rows()) {
        let bounds = KeyBounds::of(&filter);
        if filter.matches(&row).unwrap() {
            prop_assert!(contains(&bounds.partition, row.partition_key()), "{}", filter);
            prop_assert!(contains(&bounds.row, row.row_key()), "{}", filter);
            prop_assert!(!bounds.is_empty());
            prop_assert!(bounds.one_partition().is_none_or(|key| key == row.partition_key()));
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
        let bounds = KeyBounds::of(&filter);
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

    #[test]
    fn reading_never_panics(text in "[()ABnotadreq' 0-9.eLX'-]{0,40}|.*") {
        if let Ok(filter) = Filter::parse(&text) {
            prop_assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
        }
    }

    #[test]
    fn cut_text_never_panics(filter in filters(), cut: prop::sample::Index) {
        let text = filter.to_string();
        let at = (0..=cut.index(text.len().max(1))).rev().find(|at| text.is_char_boundary(*at));
        let _ = Filter::parse(&text[..at.unwrap()]);
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
            let expected = match equal {
                true => [true, false, false, true, false, true],
                false => [false, true, false, false, true, true],
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

#[test]
fn it_reads_what_the_service_takes() {
    let cases = [
        ("", "true"),
        ("  ", "true"),
        ("true", "true"),
        ("A eq 5", "A eq 5"),
        ("5 lt A", "A gt 5"),
        ("'x' ne A", "A ne 'x'"),
        ("A", "A"),
        ("not A", "not (A)"),
        ("not A eq 1", "not (A eq 1)"),
        ("not (A) and B", "(not (A)) and (B)"),
        ("A or B and not C", "(A) or ((B) and (not (C)))"),
        ("((A))", "A"),
        ("A eq 1e3", "A eq 1000.0"),
        ("A eq -5L", "A eq -5L"),
        ("A eq .5", "A eq 0.5"),
        ("A eq X'0aFF'", "A eq X'0aff'"),
        ("A eq binary'0aFF'", "A eq X'0aff'"),
        ("A eq 'O''Brien'", "A eq 'O''Brien'"),
        ("A eq datetime'2014-08-22T00:50:32.250Z'", "A eq datetime'2014-08-22T00:50:32.25Z'"),
        ("A eq NaN", "A eq NaN"),
        ("A gt -INF", "A gt -INF"),
        ("eq eq 1", "eq eq 1"),
        ("and and or", "(and) and (or)"),
        ("A eq 1 and(B eq 2)", "(A eq 1) and (B eq 2)"),
    ];
    for (text, printed) in cases {
        assert_eq!(Filter::parse(text).unwrap().to_string(), printed, "{text}");
    }
}

#[test]
fn it_refuses_what_the_service_refuses() {
    let invalid = [
        "A eq",
        "A eq 1 B",
        "A eq 2147483648",
        "A eq 9223372036854775808L",
        "A eq 1e999",
        "A eq 'x",
        "A EQ 1",
        "A eq null",
        "null",
        "A eq B",
        "1 eq 1",
        "(A",
        "A)",
        "not",
        "A eq \"x\"",
        "A eq guid'x'",
        "A eq X'0'",
        "A eq datetime'yesterday'",
        "A eq 5x",
        "A eq TRUE",
        "A.B eq 1",
        "A eq 1;",
        "A eq --1",
    ];
    for text in invalid {
        let error = Filter::parse(text).unwrap_err();
        assert!(error.is_invalid() && error.code() == Some("InvalidInput"), "{text}: {error}");
    }
    for text in ["startswith(A, 'x')", "A eq tolower('X')", "5 eq length(A)", "substringof('a',A)"]
    {
        let error = Filter::parse(text).unwrap_err();
        assert!(
            error.is_unsupported() && error.code() == Some("NotImplemented"),
            "{text}: {error}"
        );
    }
    let error = Filter::parse("A eq 1 B").unwrap_err();
    assert!(error.message().contains("syntax error at position"), "{error}");
}

#[test]
fn names_cannot_smuggle_conditions() {
    for name in ["A eq 1 or B", "A b", "", "1A", "not", "true", "false", "null", "NaN", "INF"] {
        assert!(Filter::eq(name, 1).check().unwrap_err().is_invalid(), "{name}");
        assert!((!Filter::Property(name.into())).check().is_err(), "{name}");
    }
    Filter::eq("Timestamp", entable::Ticks::MAX).check().unwrap();
}

#[test]
fn lists_of_one_are_that_one() {
    let a = || Filter::eq("A", 1);
    assert_eq!(Filter::all([]), Filter::Constant(true));
    assert_eq!(Filter::any([]), Filter::Constant(false));
    assert_eq!(Filter::all([a()]), a());
    assert_eq!(Filter::any([a()]), a());
    assert_eq!(Filter::Constant(true).and_all(a()), a());
    assert_eq!(a().and_all(Filter::Constant(true)), a());
    assert_ne!(Filter::all([a(), a()]), Filter::any([a(), a()]));
    assert_ne!(a() & a() & a(), a() & (a() & a()));
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
        assert_eq!(CostClass::of(&Filter::parse(text).unwrap()), class, "{text}");
    }
}

const DEEP: usize = 100_000;

#[test]
fn deep_text_is_refused_and_not_followed() {
    for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")"), ("(A eq 1 or ", ")")] {
        let text = [&open.repeat(DEEP), "A eq 1", &close.repeat(DEEP)].concat();
        let error = Filter::parse(&text).unwrap_err();
        assert!(error.is_invalid(), "{open}");
    }
    assert!(Filter::parse(&"(".repeat(DEEP)).is_err());
}

#[test]
fn nesting_up_to_the_limit_goes_everywhere() {
    let row = Row::build("P", "R").finish().unwrap();
    let nested = |depth: usize| (1..depth).fold(Filter::eq("A", 1), |filter, _| !filter);
    let filter = nested(Filter::NESTING);
    filter.check().unwrap();
    assert!(filter.matches(&row).is_ok());
    assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
    let filter = nested(Filter::NESTING + 1);
    for error in [
        filter.check().unwrap_err(),
        filter.matches(&row).unwrap_err(),
        Filter::parse(&filter.to_string()).unwrap_err(),
    ] {
        assert!(error.is_invalid() && error.message().contains("100"), "{error}");
    }
    let message = filter.check().unwrap_err();
    assert!(message.message().contains("101"), "{message}");
}

#[test]
fn trees_of_any_depth_are_printed_cloned_compared_and_dropped() {
    let row = Row::build("P", "R").finish().unwrap();
    let leaf = || Filter::eq("RowKey", "R");
    let grown: [fn(Filter, Filter) -> Filter; 4] = [
        |filter, _| !filter,
        |filter, leaf| leaf & filter,
        |filter, leaf| leaf | filter,
        |filter, leaf| !(leaf & filter),
    ];
    for grow in grown {
        let filter = (0..DEEP).fold(leaf(), |filter, _| grow(filter, leaf()));
        let copy = filter.clone();
        assert!(filter == copy);
        assert!(filter != leaf());
        assert!(filter.to_string().len() > DEEP);
        assert!(format!("{filter:?}").starts_with("Filter("));
        let mut named = 0;
        filter.properties(&mut |_| named += 1);
        assert!(named >= 1);
        let _ = KeyBounds::of(&filter);
        assert!(filter.check().unwrap_err().is_invalid());
        let _ = filter.matches(&row);
    }
}

#[test]
fn a_long_chain_is_one_list() {
    let row = Row::build("P", "R").finish().unwrap();
    let filter = (0..DEEP).map(|n| Filter::eq("A", n as i64)).reduce(|a, b| a | b).unwrap();
    filter.check().unwrap();
    assert!(!filter.matches(&row).unwrap());
}
