//! Tests that filters survive printing and parsing.

use entable::{Comparison, Error, Filter, Row, TableEntity, Value};
use proptest::prelude::*;

use crate::{
    edm::values,
    key::{edge_text, legal_text},
};

/// Every type of property that may be absent.
#[derive(TableEntity)]
#[table(name = "Presence", partition_key = "{id}", row_key = "")]
#[allow(dead_code, reason = "only its columns are used")]
struct Absent {
    id: String,
    boolean: Option<bool>,
    int32: Option<i32>,
    int64: Option<i64>,
    double: Option<f64>,
    string: Option<String>,
    date_time: Option<time::OffsetDateTime>,
    guid: Option<uuid::Uuid>,
    binary: Option<Vec<u8>>,
}

/// Returns a column's conditions that the row has the property, and that it lacks it.
fn presence(value: &Value) -> (String, Filter, Filter) {
    macro_rules! of {
        ($column:ident) => {{
            let name = Absent::$column.name().to_owned();
            let there = Absent::$column.is_some().into_filter().unwrap();
            (name, there, Absent::$column.is_none().into_filter().unwrap())
        }};
    }
    match value {
        Value::Boolean(_) => of!(BOOLEAN),
        Value::Int32(_) => of!(INT32),
        Value::Int64(_) => of!(INT64),
        Value::Double(_) => of!(DOUBLE),
        Value::String(_) => of!(STRING),
        Value::DateTime(_) => of!(DATE_TIME),
        Value::Guid(_) => of!(GUID),
        Value::Binary(_) => of!(BINARY),
    }
}

/// Returns what the filter and the filter that is read from its text say about a row.
fn answer(filter: &Filter, row: &Row) -> bool {
    let read = Filter::parse(&filter.to_string()).unwrap();
    assert_eq!(&read, filter);
    let answer = filter.matches(row).unwrap();
    assert_eq!(read.matches(row).unwrap(), answer);
    answer
}

fn row_with(name: &str, value: &Value) -> Row {
    Row::build("P", "R").with(name, value.as_ref()).unwrap().finish().unwrap()
}

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

pub(crate) fn comparisons() -> impl Strategy<Value = Comparison> {
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

pub(crate) fn filters() -> impl Strategy<Value = Filter> {
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

/// Returns whether a filter was refused since a number in it has no documented literal.
fn lacks_literal(error: &Error) -> bool {
    error.is_invalid() && error.message().ends_with("cannot be written as a literal in a filter")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_printed_is_read_back(filter in filters()) {
        let text = filter.to_string();
        prop_assert_eq!(&text, &filter.clone().to_string());
        match Filter::parse(&text) {
            Ok(read) => prop_assert_eq!(&read, &filter),
            // A literal that no filter may hold is not read either.
            Err(error) => prop_assert!(lacks_literal(&error) && filter.check().is_err(), "{}", error),
        }
        // All that is refused here are the literals that the service does not document, and the
        // words of its grammar where a property's name would stand.
        if let Err(error) = filter.check() {
            let message = error.message();
            prop_assert!(lacks_literal(&error) || message.ends_with("is a reserved word"), "{}", error);
        }
    }

    #[test]
    fn every_literal_is_read_back(value in values(), by in comparisons()) {
        let filter = Filter::compare("A", by, value);
        match Filter::parse(&filter.to_string()) {
            Ok(read) => prop_assert_eq!(read, filter),
            Err(error) => prop_assert!(lacks_literal(&error) && filter.check().is_err(), "{}", error),
        }
    }

    #[test]
    fn a_prefix_holds_for_the_texts_that_begin_with_it(
        prefix in edge_text(),
        rest in edge_text(),
        other in edge_text(),
        mistyped in values(),
    ) {
        let filter = Filter::starts_with("A", &prefix);
        for text in [[prefix.as_str(), &rest].concat(), other, prefix.clone()] {
            let row = row_with("A", &Value::String(text.clone()));
            prop_assert_eq!(answer(&filter, &row), text.starts_with(&prefix), "{}", filter);
        }
        let is_text = matches!(mistyped, Value::String(_));
        prop_assert!(is_text || !answer(&filter, &row_with("A", &mistyped)), "{}", filter);
        prop_assert!(!answer(&filter, &row_with("B", &Value::String(prefix))));
    }

    #[test]
    fn presence_does_not_depend_on_the_value(declared in values(), stored in values()) {
        let (name, there, absent) = presence(&declared);
        let with = row_with(&name, &stored);
        prop_assert!(answer(&there, &with) && !answer(&absent, &with), "{}", there);
        let without = row_with("Other", &stored);
        prop_assert!(!answer(&there, &without) && answer(&absent, &without), "{}", there);
    }

    #[test]
    fn ranges_and_lists_say_what_rust_says(number: i32, from: i32, until: i32) {
        let row = row_with("Int32", &Value::Int32(number));
        let column = || Absent::INT32;
        let text = |filter: Result<Filter, Error>| answer(&filter.unwrap(), &row);
        prop_assert_eq!(text(column().between(from..until).into_filter()), (from..until).contains(&number));
        prop_assert_eq!(text(column().between(from..=until).into_filter()), (from..=until).contains(&number));
        prop_assert_eq!(text(column().between(..until).into_filter()), number < until);
        prop_assert_eq!(text(column().is_in([from, until]).into_filter()), [from, until].contains(&number));
        prop_assert!(text(column().is_in([from, number]).into_filter()));
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
    for name in [
        "A eq 1 or B",
        "A b",
        "",
        "1A",
        "not",
        "and",
        "or",
        "eq",
        "ne",
        "gt",
        "ge",
        "lt",
        "le",
        "true",
        "false",
        "null",
        "NaN",
        "INF",
    ] {
        assert!(Filter::eq(name, 1).check().unwrap_err().is_invalid(), "{name}");
        assert!((!Filter::Property(name.into())).check().is_err(), "{name}");
    }
    Filter::eq("Timestamp", entable::Ticks::MAX).check().unwrap();
}

#[test]
fn numbers_without_a_literal_are_not_sent() {
    for text in ["A eq NaN", "NaN ne A", "not (A gt -INF)", "B eq 1 or A lt INF"] {
        let error = Filter::parse(text).unwrap_err();
        assert_eq!((error.code(), error.property()), (Some("InvalidInput"), Some("A")), "{text}");
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = (!Filter::gt("A", number) & Filter::eq("B", 1)).check().unwrap_err();
        assert_eq!((error.code(), error.property()), (Some("InvalidInput"), Some("A")));
    }
    Filter::gt("A", f64::MAX).check().unwrap();
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
fn filters_that_differ_anywhere_are_not_equal() {
    let of = |property, comparison, value: i32| Filter::compare(property, comparison, value);
    let age = || of("Age", Comparison::Ge, 30);
    let others = [
        of("Aged", Comparison::Ge, 30),
        of("Age", Comparison::Gt, 30),
        of("Age", Comparison::Ge, 31),
        Filter::ge("Age", 30_i64),
        Filter::ge("Age", "30"),
        Filter::Property("Age".into()),
        Filter::Property("Aged".into()),
        Filter::Constant(true),
        Filter::Constant(false),
        !age(),
        Filter::all([age(), Filter::Property("Age".into())]),
        Filter::any([age(), Filter::Property("Age".into())]),
        Filter::all([age(), Filter::Property("Aged".into())]),
        Filter::all([age(), Filter::Property("Age".into()), age()]),
    ];
    for (at, one) in others.iter().enumerate() {
        assert_ne!(one, &age());
        for (other_at, other) in others.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one} and {other}");
            // The difference lies below equal operators.
            let (one, other) =
                (!Filter::any([age(), one.clone()]), !Filter::any([age(), other.clone()]));
            assert_eq!(one == other, at == other_at, "{one} and {other}");
        }
    }
    assert_eq!(age(), age());
    assert_eq!(Filter::eq("Age", f64::NAN), Filter::eq("Age", f64::NAN));
    assert_ne!(Filter::eq("Age", f64::NAN), Filter::eq("Age", 1.0));
    assert_ne!(Filter::eq("Age", 1.0), Filter::eq("Age", f64::NAN));
}
