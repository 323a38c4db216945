//! Tests limits: each boundary value is accepted, the next one refused with limit and size in the
//! message.

use entable::{
    Error, ErrorKind, Row, ServiceCode, Ticks, ValueRef,
    limits::{
        BATCH_OPERATIONS, ENTITY_BYTES, KEY_UNITS, PROPERTIES, PROPERTY_BYTES, PROPERTY_NAME_UNITS,
        REQUEST_BYTES, STRING_UNITS, TABLE_NAME, check_key, check_property_name, check_table_name,
        is_forbidden_in_key, utf16_units,
    },
};
use proptest::prelude::*;

fn row(properties: &[(&str, ValueRef<'_>)]) -> Row {
    let mut builder = Row::build("P", "R");
    for (name, value) in properties {
        builder.put(name, *value);
    }
    builder.finish().unwrap()
}

/// Refused with that code, naming what was found and the limit.
fn refused(result: Result<(), Error>, code: &str, found: usize, limit: usize) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Some(code));
    assert!(error.is_too_large(), "{error}");
    let numbers = [found.to_string(), limit.to_string()];
    assert!(numbers.iter().all(|number| error.message().contains(number)), "{error}");
}

#[test]
fn the_limits_are_the_documented_ones() {
    assert_eq!((KEY_UNITS, PROPERTIES, PROPERTY_NAME_UNITS), (512, 252, 255));
    assert_eq!((PROPERTY_BYTES, STRING_UNITS), (65_536, 32_768));
    assert_eq!((ENTITY_BYTES, BATCH_OPERATIONS), (1_048_576 - 168, 100));
    assert_eq!((REQUEST_BYTES, TABLE_NAME), (4_194_304, (3, 63)));
}

#[test]
fn keys() {
    check_key("RowKey", "").unwrap();
    check_key("RowKey", &"x".repeat(KEY_UNITS)).unwrap();
    check_key("RowKey", &"\u{10000}".repeat(KEY_UNITS / 2)).unwrap();
    refused(check_key("RowKey", &"x".repeat(513)), "KeyValueTooLarge", 513, KEY_UNITS);
    refused(check_key("RowKey", &"\u{10000}".repeat(257)), "KeyValueTooLarge", 514, KEY_UNITS);
    for c in ['/', '\\', '#', '?', '\0', '\u{1f}', '\u{7f}', '\u{9f}', '\t', '\n'] {
        let error = check_key("PartitionKey", &format!("a{c}b")).unwrap_err();
        assert!(error.is_invalid() && error.code() == Some("OutOfRangeInput"), "{error}");
        assert!(error.message().starts_with("PartitionKey"), "{error}");
        assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
    }
    check_key("RowKey", " '\"%+&=@:;,!$()*[]{}|^`<>~\u{a0}\u{ffff}\u{10ffff}").unwrap();
}

#[test]
fn table_names() {
    for name in ["abc", "A1b", &"x".repeat(63), "Tables1"] {
        check_table_name(name).unwrap();
    }
    let code = |name: &str| check_table_name(name).unwrap_err().code().map(str::to_owned);
    for name in ["ab", &"x".repeat(64)] {
        assert_eq!(code(name).as_deref(), Some("OutOfRangeInput"), "{name}");
    }
    for name in ["", "1ab", "a-b", "a b", "caf\u{e9}", "$Metrics", "_ab"] {
        assert_eq!(code(name).as_deref(), Some("InvalidResourceName"), "{name}");
    }
    for name in ["tables", "TABLES"] {
        assert_eq!(code(name).as_deref(), Some("InvalidInput"), "{name}");
    }
    let text = check_table_name(&"x".repeat(64)).unwrap_err().to_string();
    assert!(text.contains("64") && text.contains("63"), "{text}");
}

#[test]
fn property_names() {
    for name in ["A", "_", "_1", "caf\u{e9}", "timestamp", "ETag", &"x".repeat(255)] {
        check_property_name(name).unwrap();
    }
    let long = check_property_name(&"x".repeat(256));
    refused(long, "PropertyNameTooLong", 256, PROPERTY_NAME_UNITS);
    for name in ["", "1a", "a-b", "a b", "a.b", "a\u{0}", "\u{e000}", "odata.etag"] {
        let error = check_property_name(name).unwrap_err();
        assert_eq!(error.code(), Some("PropertyNameInvalid"), "{name}");
    }
    for name in ["PartitionKey", "RowKey", "Timestamp"] {
        assert_eq!(check_property_name(name).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn property_values() {
    let string = |units: usize| row(&[("A", ValueRef::String(&"x".repeat(units)))]).check();
    string(STRING_UNITS).unwrap();
    refused(string(STRING_UNITS + 1), "PropertyValueTooLarge", 32_769, STRING_UNITS);
    let binary = |bytes: usize| row(&[("A", ValueRef::Binary(&vec![0; bytes]))]).check();
    binary(PROPERTY_BYTES).unwrap();
    refused(binary(PROPERTY_BYTES + 1), "PropertyValueTooLarge", 65_537, PROPERTY_BYTES);
    let time = |ticks| row(&[("At", ValueRef::DateTime(ticks))]).check();
    time(Ticks::MIN_PROPERTY).unwrap();
    time(Ticks::MAX).unwrap();
    let before = Ticks::new(Ticks::MIN_PROPERTY.get() - 1).unwrap();
    let error = time(before).unwrap_err();
    assert_eq!((error.code(), error.property()), (Some("OutOfRangeInput"), Some("At")));
    assert_eq!(error.keys(), Some(("P", "R")));
}

#[test]
fn the_number_of_properties() {
    let named: Vec<String> = (0..=PROPERTIES).map(|n| format!("P{n}")).collect();
    let all: Vec<_> = named.iter().map(|name| (name.as_str(), ValueRef::Int32(1))).collect();
    row(&all[..PROPERTIES]).check().unwrap();
    refused(row(&all).check(), "TooManyProperties", 253, PROPERTIES);
}

#[test]
fn the_size_of_an_entity() {
    // 4 for the entity, 2 per unit of a key, 8 + 2 + 4 for each property, and its bytes.
    let chunk = vec![0; 60_000];
    let fixed = 4 + 2 * 2;
    let sized = |size: usize| {
        let mut names = (b'A'..=b'Z').map(|name| char::from(name).to_string());
        let mut left = size - fixed;
        let mut builder = Row::build("P", "R");
        while left > 0 {
            let bytes = (left - 14).min(chunk.len());
            // The remaining bytes have to be room for a property.
            let bytes = if (1..14).contains(&(left - 14 - bytes)) { bytes - 14 } else { bytes };
            builder.put(&names.next().unwrap(), ValueRef::Binary(&chunk[..bytes]));
            left -= bytes + 14;
        }
        let row = builder.finish().unwrap();
        assert_eq!(row.service_size().unwrap(), size);
        row.check()
    };
    sized(ENTITY_BYTES).unwrap();
    refused(sized(ENTITY_BYTES + 1), "EntityTooLarge", ENTITY_BYTES + 1, ENTITY_BYTES);
}

#[test]
fn a_property_that_is_given_twice() {
    let one = ValueRef::Int32(1);
    let error = row(&[("A", one), ("B", one), ("A", one)]).check().unwrap_err();
    assert_eq!(error.code(), Some("DuplicatePropertiesSpecified"));
    assert_eq!(error.property(), Some("A"));
    row(&[("A", one), ("a", one)]).check().unwrap();
}

#[test]
fn what_no_row_can_hold() {
    let long = "x".repeat(70_000);
    assert!(Row::build(&long, "R").finish().unwrap_err().is_too_large());
    assert!(Row::build("P", &long).finish().unwrap_err().is_too_large());
    let mut builder = Row::build("P", "R");
    builder.put(&long, ValueRef::Int32(1));
    assert!(builder.finish().unwrap_err().is_too_large());
}

#[test]
fn codes_say_status_and_kind() {
    for code in ServiceCode::ALL {
        assert_eq!(&ServiceCode::parse(code.as_str(), 0), code);
        let error = Error::service(code.clone(), "text");
        assert_eq!(error.status(), Some(code.status()));
        assert_eq!(error.kind(), code.kind());
        assert!((400..=503).contains(&code.status()));
    }
    let unknown = |status| ServiceCode::parse("SomethingNew", status).kind();
    let kinds = [400, 403, 404, 408, 409, 412, 413, 429, 500, 501, 503].map(unknown);
    assert_eq!(
        kinds,
        [
            ErrorKind::Invalid,
            ErrorKind::Denied,
            ErrorKind::NotFound,
            ErrorKind::Backend,
            ErrorKind::Conflict,
            ErrorKind::PreconditionFailed,
            ErrorKind::TooLarge,
            ErrorKind::Throttled,
            ErrorKind::Backend,
            ErrorKind::Unsupported,
            ErrorKind::Throttled,
        ]
    );
}

#[test]
fn an_error_names_its_place_once() {
    let error = Error::service(ServiceCode::EntityAlreadyExists, "the entity exists")
        .at_operation(2)
        .in_table("Staff")
        .in_table("Other")
        .at_keys("Sales", "a'b\n")
        .at_keys("x", "y")
        .in_property("Age")
        .with_index("ByEmail");
    assert_eq!(
        error.to_string(),
        "the entity exists (operation `2`, table `Staff`, PartitionKey `Sales`, \
         RowKey `a\\'b\\n`, property `Age`, index `ByEmail`, code `EntityAlreadyExists`)"
    );
    assert!(error.is_conflict() && !error.is_not_found());
    assert_eq!((error.table(), error.keys()), (Some("Staff"), Some(("Sales", "a'b\n"))));
}

proptest! {
    #[test]
    fn units_are_those_of_utf16(text in ".*") {
        prop_assert_eq!(utf16_units(&text), text.encode_utf16().count());
    }

    #[test]
    fn checks_never_panic(text in ".*") {
        let _ = check_key("RowKey", &text);
        let _ = check_table_name(&text);
        let _ = check_property_name(&text);
        prop_assert_eq!(
            check_key("RowKey", &text).is_ok(),
            utf16_units(&text) <= KEY_UNITS && !text.contains(is_forbidden_in_key)
        );
    }
}
