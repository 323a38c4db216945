//! Tests values: Rust types to stored types and back, and ticks.

use std::fmt::Debug;

use bytes::Bytes;
use entable::{Bag, EdmType, EdmValue, ParseTicksError, Property, Ticks, Value, ValueRef};
use proptest::prelude::*;
use time::{Date, Duration, OffsetDateTime, UtcOffset};
use uuid::Uuid;

use crate::key::times;

pub(crate) fn ticks() -> impl Strategy<Value = Ticks> {
    (Ticks::MIN_PROPERTY.get()..=Ticks::MAX.get(), 0..3_u8).prop_map(|(ticks, unit)| {
        // Whole seconds and milliseconds are what people write.
        let unit = [1, 10_000, 10_000_000][usize::from(unit)];
        Ticks::new(ticks / unit * unit).unwrap()
    })
}

/// Values of every type, the edges of each more often than chance would have them.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        prop_oneof![any::<i32>(), -3..3, Just(i32::MIN)].prop_map(Value::Int32),
        prop_oneof![any::<i64>(), -3_i64..3, Just(i64::MIN), Just(i64::MAX)].prop_map(Value::Int64),
        prop_oneof![
            any::<f64>(),
            (-3_i8..3).prop_map(f64::from),
            any::<i64>().prop_map(|v| v as f64),
            prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e16]),
        ]
        .prop_map(Value::Double),
        prop_oneof![".*", "[ab']{0,3}", crate::key::edge_text()].prop_map(Value::String),
        ticks().prop_map(Value::DateTime),
        prop_oneof![any::<u128>(), 0_u128..3].prop_map(|v| Value::Guid(Uuid::from_u128(v))),
        prop::collection::vec(any::<u8>(), 0..5).prop_map(|v| Value::Binary(Bytes::from(v))),
    ]
}

/// Equal, and a NaN equals itself.
pub(crate) fn same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn round_trip<T: EdmValue + PartialEq + Debug>(value: &T) {
    let stored = value.to_edm().unwrap().into_value();
    assert_eq!(stored.edm_type(), T::EDM);
    assert_eq!(&T::from_edm(stored.as_ref()).unwrap(), value);
    assert_eq!(&T::from_stored(Some(stored.as_ref())).unwrap(), value);
    assert_eq!(Option::<T>::from_stored(Some(stored.as_ref())).unwrap().as_ref(), Some(value));
}

/// A stored value of another type is refused, naming both types. Wider numbers read an Int32.
fn refuses_others<T: EdmValue + Debug>(stored: &Value) {
    let result = T::from_edm(stored.as_ref());
    if stored.edm_type() == EdmType::Int32 && matches!(T::EDM, EdmType::Int64 | EdmType::Double) {
        let ValueRef::Int32(number) = stored.as_ref() else { panic!("{stored:?}") };
        match result {
            Ok(wide) => {
                let read = wide.to_edm().unwrap().into_value();
                let expected: Value = match T::EDM {
                    EdmType::Int64 => i64::from(number).into(),
                    _ => f64::from(number).into(),
                };
                assert_eq!(read, expected);
            }
            // Unsigned fields refuse negative numbers, whatever their width.
            Err(error) => assert!(number < 0 && error.to_string().ends_with(&number.to_string())),
        }
    } else if stored.edm_type() != T::EDM {
        let text = result.unwrap_err().to_string();
        assert_eq!(text, format!("expected {}, found {}", T::EDM, stored.edm_type()));
    }
}

proptest! {
    #[test]
    fn scalars(a: bool, b: i8, c: u8, d: i16, e: u16, f: i32, g: u32, h: i64, i: f32, j: f64) {
        round_trip(&a);
        round_trip(&b);
        round_trip(&c);
        round_trip(&d);
        round_trip(&e);
        round_trip(&f);
        round_trip(&g);
        round_trip(&h);
        round_trip(&i);
        round_trip(&j);
    }

    #[test]
    fn texts_bytes_and_identifiers(a in ".*", b: Vec<u8>, c: u128) {
        round_trip(&a);
        round_trip(&a.clone().into_boxed_str());
        round_trip(&b);
        round_trip(&Bytes::from(b));
        round_trip(&Uuid::from_u128(c));
    }

    #[test]
    fn unsigned_64(value: u64) {
        match value.to_edm() {
            Ok(stored) => prop_assert_eq!(u64::from_edm(stored.as_ref()).unwrap(), value),
            Err(error) => {
                prop_assert!(i64::try_from(value).is_err());
                prop_assert!(error.to_string().contains(&value.to_string()));
            }
        }
    }

    #[test]
    fn narrow_integers_refuse_what_does_not_fit(stored: i32) {
        let value = ValueRef::Int32(stored);
        prop_assert_eq!(i8::from_edm(value).ok(), i8::try_from(stored).ok());
        prop_assert_eq!(u16::from_edm(value).ok(), u16::try_from(stored).ok());
        prop_assert_eq!(u32::from_edm(ValueRef::Int64(stored.into())).ok(), u32::try_from(stored).ok());
    }

    #[test]
    fn single_precision_refuses_what_is_beyond_it(stored: f64) {
        let rounded = stored as f32;
        let read = f32::from_edm(ValueRef::Double(stored)).ok();
        if stored.is_finite() && rounded.is_infinite() {
            prop_assert_eq!(read, None);
        } else if !stored.is_nan() {
            prop_assert_eq!(read, Some(rounded));
        }
    }

    #[test]
    fn every_other_type_is_refused(stored in values()) {
        refuses_others::<bool>(&stored);
        refuses_others::<i32>(&stored);
        refuses_others::<u64>(&stored);
        refuses_others::<f64>(&stored);
        refuses_others::<String>(&stored);
        refuses_others::<Ticks>(&stored);
        refuses_others::<Date>(&stored);
        refuses_others::<Uuid>(&stored);
        refuses_others::<Vec<u8>>(&stored);
    }

    #[test]
    fn times_at_100_ns(time in times(), nanos in 0_i64..100, offset in -23_i8..=23) {
        let Ok(stored) = time.to_edm() else {
            prop_assert!(time < OffsetDateTime::from(Ticks::MIN_PROPERTY));
            return Ok(());
        };
        prop_assert_eq!(OffsetDateTime::from_edm(stored.as_ref()).unwrap(), time);
        // The part below a tick is cut, towards the past, in every zone.
        let finer = time.checked_add(Duration::nanoseconds(nanos));
        let zone = UtcOffset::from_hms(offset, 0, 0).unwrap();
        if let Some(finer) = finer.and_then(|time| time.checked_to_offset(zone)) {
            prop_assert_eq!(finer.to_edm().unwrap().into_value(), stored.into_value());
        }
    }

    #[test]
    fn dates_are_midnights(time in times()) {
        let date = time.date();
        if date.to_edm().is_ok() {
            round_trip(&date);
        }
        let ticks = Ticks::try_from(time).unwrap();
        prop_assert_eq!(Date::from_edm(ValueRef::DateTime(ticks)).is_ok(), time.time().as_hms_nano() == (0, 0, 0, 0));
    }

    #[test]
    fn ticks_go_through_text(ticks in prop_oneof![ticks(), Just(Ticks::MIN), Just(Ticks::MAX)]) {
        let text = ticks.to_string();
        prop_assert_eq!(text.parse::<Ticks>().unwrap(), ticks);
        prop_assert!(!text.ends_with("0Z") || !text.contains('.'), "trailing zeros in {}", text);
        prop_assert_eq!(Ticks::try_from(OffsetDateTime::from(ticks)).unwrap(), ticks);
        prop_assert_eq!(ticks.inverted().inverted(), ticks);
    }

    #[test]
    fn reading_ticks_never_panics(
        text in "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]{0,16}(Z|[+-][0-9]{2}:[0-9]{2})?)?|.*"
    ) {
        let _ = text.parse::<Ticks>();
    }

    #[test]
    fn offsets_are_converted(ticks in ticks(), hours in 0_i64..24, minutes in 0_i64..60) {
        let text = ticks.to_string();
        let there = text.replace('Z', &format!("+{hours:02}:{minutes:02}")).parse::<Ticks>();
        let expected = ticks.get() - (hours * 60 + minutes) * 600_000_000;
        prop_assert_eq!(there.ok(), Ticks::new(expected));
    }

    #[test]
    fn a_bag_holds_each_name_once(pairs in prop::collection::vec(("[ab]", values()), 0..6)) {
        let bag: Bag = pairs.iter().cloned().collect();
        for (name, _) in &pairs {
            let last = pairs.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v).unwrap();
            prop_assert!(same(bag.get(name).unwrap().as_ref(), last.as_ref()));
            prop_assert_eq!(bag.iter().filter(|(n, _)| n == name).count(), 1);
        }
    }
}

#[test]
fn ticks_read_what_the_service_takes() {
    let read = |text: &str| text.parse::<Ticks>().map(|ticks| ticks.to_string());
    let cases = [
        ("2014-08-22", "2014-08-22T00:00:00Z"),
        ("2014-08-22T00:50Z", "2014-08-22T00:50:00Z"),
        ("2014-08-22T00:50:32", "2014-08-22T00:50:32Z"),
        ("2014-08-22T00:50:32.250Z", "2014-08-22T00:50:32.25Z"),
        ("2014-08-22T00:50:32.123456789Z", "2014-08-22T00:50:32.1234567Z"),
        ("2014-08-22T00:50:32+02:00", "2014-08-21T22:50:32Z"),
        ("2014-08-22T00:50:32-00:30", "2014-08-22T01:20:32Z"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        "",
        "2014",
        "2014-8-22",
        "2014-02-30",
        "0000-01-01",
        "10000-01-01",
        "2014-08-22T",
        "2014-08-22TZ",
        "2014-08-22T00Z",
        "2014-08-22T24:00Z",
        "2014-08-22T00:50.5Z",
        "2014-08-22T00:50:32.Z",
        "2014-08-22T00:50:32.1234567890Z",
        "2014-08-22T00:50:60Z",
        "2014-08-22T00:50:32+2:00",
        "2014-08-22 00:50:32",
        "2014-08-22T00:50:32ZZ",
        "+014-08-22",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
    ] {
        assert_eq!(read(text), Err(ParseTicksError), "{text}");
    }
}

#[test]
fn ticks_count_as_dot_net_does() {
    assert_eq!("1601-01-01T00:00:00Z".parse(), Ok(Ticks::MIN_PROPERTY));
    assert_eq!("1970-01-01T00:00:00Z".parse(), Ok(Ticks::UNIX_EPOCH));
    assert_eq!("9999-12-31T23:59:59.9999999Z".parse(), Ok(Ticks::MAX));
    assert_eq!("0001-01-01T00:00:00Z".parse(), Ok(Ticks::MIN));
    assert_eq!(Ticks::MAX.next(), Ticks::MAX);
    assert_eq!(Ticks::new(-1), None);
    assert_eq!(Ticks::new(Ticks::MAX.get() + 1), None);
}

#[test]
fn a_missing_property_is_an_error_but_for_an_option() {
    let error = i32::from_stored(None).unwrap_err();
    assert_eq!(error.to_string(), "expected Edm.Int32, found no such property");
    assert_eq!(Option::<i32>::from_stored(None).unwrap(), None);
    assert!(Option::<i32>::from_stored(Some(ValueRef::Int64(1))).is_err());
}

#[test]
fn tags_are_those_of_stored_rows() {
    let names = (1..=8).map(|tag| EdmType::from_tag(tag).unwrap().name()).collect::<Vec<_>>();
    let golden = ["Boolean", "Int32", "Int64", "Double", "String", "DateTime", "Guid", "Binary"];
    assert_eq!(names, golden.map(|name| format!("Edm.{name}")));
    assert_eq!((EdmType::from_tag(0), EdmType::from_tag(9)), (None, None));
}

#[test]
fn a_clock_stops_at_the_end_of_time() {
    use entable::{Clock, SteppedClock};
    let clock = SteppedClock::new(Ticks::UNIX_EPOCH);
    for _ in 0..3 {
        clock.advance(std::time::Duration::MAX);
        assert_eq!(clock.now(), Ticks::MAX);
    }
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

    use super::*;

    proptest! {
        #[test]
        fn the_same_ticks_as_time(ticks in ticks(), nanos in 0_i64..100) {
            let time = DateTime::<Utc>::from(ticks);
            round_trip(&time);
            let stored = (time + TimeDelta::nanoseconds(nanos)).to_edm().unwrap().into_value();
            prop_assert_eq!(stored, Value::DateTime(ticks));
            prop_assert_eq!(Ticks::try_from(time), Ok(ticks));
            round_trip(&time.date_naive());
        }

        #[test]
        fn any_time_is_stored_or_refused(seconds: i64, nanos in 0_u32..2_000_000_000) {
            if let Some(time) = DateTime::<Utc>::from_timestamp(seconds, nanos) {
                let _ = time.to_edm();
                let _ = time.date_naive().to_edm();
            }
        }
    }

    #[test]
    fn a_leap_second_is_the_end_of_the_second_before() {
        let date = NaiveDate::from_ymd_opt(2016, 12, 31).unwrap();
        let leap = date.and_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap().and_utc();
        let ticks: Ticks = "2016-12-31T23:59:59.9999999Z".parse().unwrap();
        assert_eq!(leap.to_edm().unwrap().into_value(), Value::DateTime(ticks));
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use jiff::{Timestamp, ToSpan, civil::Date};

    use super::*;

    /// The last time that a `Timestamp` holds, cut to ticks.
    fn last() -> Ticks {
        Ticks::try_from(Timestamp::MAX).unwrap()
    }

    proptest! {
        #[test]
        fn the_same_ticks_as_time(ticks in ticks(), nanos in 0_i64..100) {
            prop_assume!(ticks < last());
            let time = Timestamp::try_from(ticks).unwrap();
            round_trip(&time);
            let stored = (time + nanos.nanoseconds()).to_edm().unwrap().into_value();
            prop_assert_eq!(stored, Value::DateTime(ticks));
            prop_assert_eq!(Ticks::try_from(time), Ok(ticks));
            let date = OffsetDateTime::from(ticks).date();
            let midnight = Ticks::try_from(date.midnight().assume_utc()).unwrap();
            let of_jiff = Date::try_from(midnight).unwrap();
            prop_assert_eq!(of_jiff.to_string(), date.to_string());
            if midnight >= Ticks::MIN_PROPERTY {
                round_trip(&of_jiff);
                prop_assert_eq!(of_jiff.to_edm().unwrap().into_value(), Value::DateTime(midnight));
            }
        }

        #[test]
        fn any_time_is_stored_or_refused(seconds in Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()) {
            let time = Timestamp::from_second(seconds).unwrap();
            let year = jiff::tz::TimeZone::UTC.to_datetime(time).date();
            prop_assert_eq!(time.to_edm().is_ok(), (1601..=9999).contains(&year.year()));
            prop_assert_eq!(year.to_edm().is_ok(), (1601..=9999).contains(&year.year()));
        }
    }

    #[test]
    fn the_last_hours_of_the_calendar_are_refused_and_not_wrapped() {
        assert!(Timestamp::try_from(last()).is_ok());
        let error = Timestamp::try_from(last().next()).unwrap_err();
        assert!(error.to_string().contains("9999-12-30T22:00:00"), "{error}");
        assert!(Timestamp::from_edm(ValueRef::DateTime(Ticks::MAX)).is_err());
        let not_midnight = "2014-07-31T00:00:00.0000001Z".parse::<Ticks>().unwrap();
        assert!(Date::try_from(not_midnight).is_err());
    }
}

#[cfg(feature = "rust_decimal")]
mod with_decimal {
    use rust_decimal::Decimal;

    use super::*;

    proptest! {
        #[test]
        fn decimals_keep_value_and_scale(
            high in i64::MIN / 4..i64::MAX / 4,
            scale in 0_u32..=28,
        ) {
            let decimal = Decimal::from_i128_with_scale(i128::from(high) << 32, scale);
            round_trip(&decimal);
            let stored = decimal.to_edm().unwrap().into_value();
            prop_assert_eq!(Decimal::from_edm(stored.as_ref()).unwrap().scale(), scale);
        }

        #[test]
        fn other_text_is_refused(text in ".*") {
            let _ = Decimal::from_edm(ValueRef::String(&text));
        }
    }
}
