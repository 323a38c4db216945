//! Tests single key parts: round trips, order, width; successors; buckets.

use std::{cmp::Ordering, fmt::Debug};

use entable::{
    InvalidValue, Ticks,
    key::{
        DatePart, Descending, FixedWidth, Form, KeyPart, KeyWriter, Segment, Template,
        TemplatePart, bucket, bucket_width, date_width, decode_date, encode_bucket, encode_date,
        escape, lower, resolution_of, successor, unescape,
    },
    limits::is_forbidden_in_key,
};
use proptest::prelude::*;
use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;

/// Ordinal, by UTF-16 units: how the service sorts keys.
pub(crate) fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

pub(crate) fn written(encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>) -> String {
    let mut out = String::new();
    encode(&mut out).unwrap();
    out
}

pub(crate) fn times() -> impl Strategy<Value = OffsetDateTime> {
    (Ticks::MIN.get()..=Ticks::MAX.get()).prop_map(|t| Ticks::new(t).unwrap().into())
}

/// Characters at the edges of the order and of the escapes.
pub(crate) fn edge_char() -> impl Strategy<Value = char> {
    prop_oneof![
        prop::sample::select(
            "ab_~AE07/\\#?.\u{1f}\u{7f}\u{9f}\u{a0}\u{e9}\u{d7ff}\u{e000}\u{fffe}\u{ffff}\u{10000}\u{103ff}\u{10ffff}"
                .chars()
                .collect::<Vec<_>>()
        ),
        any::<char>(),
    ]
}

pub(crate) fn edge_text() -> impl Strategy<Value = String> {
    prop::collection::vec(edge_char(), 0..6).prop_map(|c| c.into_iter().collect())
}

pub(crate) fn legal_text() -> impl Strategy<Value = String> {
    edge_text().prop_map(|text| text.chars().filter(|c| !is_forbidden_in_key(*c)).collect())
}

fn check_plain<T: KeyPart + PartialEq + PartialOrd + Debug>(a: &T, b: &T) {
    let (key_a, key_b) = (written(|out| a.encode(out)), written(|out| b.encode(out)));
    assert_eq!(&T::decode(&key_a).unwrap(), a);
    assert_eq!(Some(utf16_order(&key_a, &key_b)), a.partial_cmp(b), "{a:?} {b:?}");
    if let Some(width) = T::WIDTH {
        assert_eq!(key_a.chars().count(), width);
    }
}

fn check_descending<T: Descending + PartialEq + PartialOrd + Debug>(a: &T, b: &T) {
    let key_a = written(|out| a.encode_descending(out));
    let key_b = written(|out| b.encode_descending(out));
    assert_eq!(&T::decode_descending(&key_a).unwrap(), a);
    assert_eq!(Some(utf16_order(&key_b, &key_a)), a.partial_cmp(b), "{a:?} {b:?}");
    assert_eq!(key_a.len(), T::WIDTH_DESCENDING);
}

/// Whatever decodes was written: no two texts give one value.
fn check_only_what_is_written<T: Descending + Debug>(text: &str) {
    if let Ok(value) = T::decode(text) {
        assert_eq!(written(|out| value.encode(out)), text);
    }
    if let Ok(value) = T::decode_descending(text) {
        assert_eq!(written(|out| value.encode_descending(out)), text);
    }
}

macro_rules! integer_laws {
    ($($name:ident: $type:ty;)*) => {
        $(mod $name {
            use super::*;

            proptest! {
                #[test]
                fn plain_and_descending(a: $type, b: $type) {
                    for (a, b) in [(a, b), (a, a.wrapping_add(1)), (<$type>::MIN, <$type>::MAX)] {
                        check_plain(&a, &b);
                        check_descending(&a, &b);
                    }
                }

                #[test]
                fn fixed_width(number: $type, width in 1_usize..50) {
                    let mut out = "before".to_owned();
                    let digits = number.to_string();
                    match number.encode_zero_padded(width, &mut out) {
                        Ok(()) => {
                            prop_assert_eq!(&out, &format!("before{digits:0>width$}"));
                            prop_assert_eq!(<$type>::decode_width(&out[6..]).unwrap(), number);
                        }
                        Err(error) => {
                            prop_assert!(digits.starts_with('-') || digits.len() > width);
                            prop_assert!(error.to_string().contains(&digits));
                        }
                    }
                }

                #[test]
                fn only_what_is_written(text in "[0-9]{1,21}|.{0,21}") {
                    check_only_what_is_written::<$type>(&text);
                }
            }
        })*
    };
}

integer_laws! {
    of_u8: u8;
    of_u16: u16;
    of_u32: u32;
    of_u64: u64;
    of_i8: i8;
    of_i16: i16;
    of_i32: i32;
    of_i64: i64;
}

proptest! {
    #[test]
    fn times_and_dates(a in times(), b in times()) {
        check_plain(&a, &b);
        check_descending(&a, &b);
        check_plain(&a.date(), &b.date());
        check_descending(&a.date(), &b.date());
    }

    #[test]
    fn times_only_what_is_written(text in "[0-9]{19}|[0-9]{8}|.{0,20}") {
        check_only_what_is_written::<OffsetDateTime>(&text);
        check_only_what_is_written::<Date>(&text);
    }

    #[test]
    fn times_are_cut_to_100_ns(time in times(), nanos in 0_i64..100) {
        prop_assume!(time < OffsetDateTime::from(Ticks::MAX));
        let finer = time + Duration::nanoseconds(nanos);
        prop_assert_eq!(written(|out| finer.encode(out)), written(|out| time.encode(out)));
        prop_assert_eq!(
            written(|out| finer.encode_descending(out)),
            written(|out| time.encode_descending(out))
        );
    }

    #[test]
    fn identifiers_and_flags(a: u128, b: u128, c: bool, d: bool) {
        check_plain(&Uuid::from_u128(a), &Uuid::from_u128(b));
        check_plain(&c, &d);
    }

    #[test]
    fn identifiers_only_as_written(text in "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}") {
        prop_assert_eq!(Uuid::decode(&text).is_ok(), text == text.to_lowercase());
    }

    #[test]
    fn text_sorts_where_nothing_is_escaped(a in legal_text(), b in legal_text()) {
        prop_assume!(!a.contains('~') && !b.contains('~'));
        let (key_a, key_b) = (escape(&a, None), escape(&b, None));
        prop_assert_eq!(utf16_order(&key_a, &key_b), utf16_order(&a, &b));
    }

    #[test]
    fn escapes_go_back(text in edge_text(), end in prop::option::of(edge_char())) {
        prop_assume!(end != Some('~'));
        let key = escape(&text, end);
        prop_assert_eq!(unescape(&key).unwrap(), text);
        prop_assert!(!key.contains(is_forbidden_in_key));
        // Neither the framework's rows nor their prefix begin like an escaped text.
        prop_assert!(!key.starts_with("~e"));
        if let Some(end) = end.filter(|c| !c.is_ascii_hexdigit()) {
            prop_assert!(!key.contains(end));
        }
    }

    #[test]
    fn a_prefix_of_the_text_is_a_prefix_of_the_key(
        prefix in edge_text(),
        rest in edge_text(),
        end in prop::option::of(edge_char()),
    ) {
        let whole = escape(&[prefix.as_str(), &rest].concat(), end);
        prop_assert!(whole.starts_with(&escape(&prefix, end)));
    }

    #[test]
    fn unescape_never_panics(text in "[~A0-9E/a]{0,12}|.*") {
        let _ = unescape(&text);
    }

    #[test]
    fn lower_is_per_character(a in ".*", b in ".*") {
        let both = written(|out| { lower(&[a.as_str(), &b].concat(), out); Ok(()) });
        let each = written(|out| { lower(&a, out); lower(&b, out); Ok(()) });
        prop_assert_eq!(both, each);
    }

    #[test]
    fn successor_is_the_least_key_above(prefix in legal_text(), key in legal_text()) {
        for key in [&key, &[prefix.as_str(), &key].concat(), &["\u{ffff}", &key].concat()] {
            let above = successor(&prefix);
            let is_below = above.as_deref().is_none_or(|above| utf16_order(key, above).is_lt());
            prop_assert!(above.as_deref().is_none_or(|above| !above.contains(is_forbidden_in_key)));
            let is_from = utf16_order(key, &prefix).is_ge();
            prop_assert_eq!(is_below && is_from, key.starts_with(&prefix), "{:?} {:?}", key, above);
        }
    }

    #[test]
    fn buckets_are_below_their_number(text in ".*", buckets in 1_u32..10_000) {
        prop_assert!(bucket(&text, buckets) < buckets);
        let key = written(|out| encode_bucket(&text, buckets, out));
        prop_assert_eq!(key.len(), bucket_width(buckets));
        prop_assert_eq!(key.parse::<u32>().unwrap(), bucket(&text, buckets));
    }

    #[test]
    fn date_forms(a in times(), b in times(), form in date_forms_in_order()) {
        let (key_a, key_b) =
            (written(|out| encode_date(&a, &form, out)), written(|out| encode_date(&b, &form, out)));
        prop_assert_eq!(key_a.len(), date_width(&form));
        // The form keeps order as far as it is fine, and its start gives itself.
        let start: OffsetDateTime = decode_date(&key_a, &form).unwrap();
        prop_assert!(start <= a);
        prop_assert_eq!(written(|out| encode_date(&start, &form, out)), key_a.clone());
        if a <= b {
            prop_assert!(utf16_order(&key_a, &key_b).is_le());
        }
        if resolution_of(&form).covers(<OffsetDateTime as DatePart>::RESOLUTION) {
            prop_assert_eq!(start, a);
        }
        let date: Result<Date, _> = decode_date(&key_a, &form);
        if resolution_of(&form).covers(Date::RESOLUTION) {
            let midnight = written(|out| encode_date(&a.date(), &form, out));
            prop_assert_eq!(decode_date::<Date>(&midnight, &form).unwrap(), a.date());
        } else {
            prop_assert!(date.is_ok());
        }
    }

    #[test]
    fn decode_date_never_panics(text in "[0-9]{0,30}|.*", form in "(%[YmdHMSfx]|.){0,8}") {
        let _ = decode_date::<OffsetDateTime>(&text, &form);
        let _ = date_width(&form);
        let _ = resolution_of(&form);
        let mut out = String::new();
        let _ = encode_date(&OffsetDateTime::UNIX_EPOCH, &form, &mut out);
    }
}

/// Makes date forms of the first one to eight units, with separators between some of them.
pub(crate) fn date_forms_in_order() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["", "-", "T", "."]), 1..8).prop_map(|between| {
        between.iter().zip("YmdHMSf".chars()).map(|(text, unit)| format!("{text}%{unit}")).collect()
    })
}

#[test]
fn the_keys_of_the_design_come_out_exactly() {
    assert_eq!(written(|out| 223_u32.encode_zero_padded(6, out)), "000223");
    assert_eq!(written(|out| 123_u32.encode_zero_padded(8, out)), "00000123");
    let email = written(|out| {
        lower("JonesJ@Contoso.com", out);
        Ok(())
    });
    assert_eq!(escape(&email, None), "jonesj@contoso.com");
}

#[test]
fn the_keys_of_the_design_come_out_whole() {
    const fn part(form: Form, width: Option<usize>) -> Segment {
        Segment::Part(TemplatePart::new("Field", form, width))
    }
    const ID: Segment = part(Form::Width(6), Some(6));
    static REVIEW: Template = Template {
        text: "empid_{id:06}_{year:04}",
        segments: &[
            Segment::Literal("empid_"),
            ID,
            Segment::Literal("_"),
            part(Form::Width(4), Some(4)),
        ],
    };
    static NAMES: Template = Template {
        text: "{first}_{last}",
        segments: &[part(Form::Plain, None), Segment::Literal("_"), part(Form::Plain, None)],
    };
    let mut key = KeyWriter::new(&REVIEW, "RowKey");
    key.write_part(|out| 123_u32.encode_zero_padded(6, out)).unwrap();
    key.write_part(|out| 2012_u16.encode_zero_padded(4, out)).unwrap();
    assert_eq!(key.finish().unwrap(), "empid_000123_2012");
    let mut key = KeyWriter::new(&NAMES, "RowKey");
    key.write_part(|out| "Ann_Marie".to_owned().encode(out)).unwrap();
    key.write_part(|out| "R&D/Test_1".to_owned().encode(out)).unwrap();
    assert_eq!(key.finish().unwrap(), "Ann~5FMarie_R&D~2FTest_1");
}

#[test]
fn inverted_ticks_come_out_exactly() {
    let newest_first = |text: &str| {
        let time = OffsetDateTime::from(text.parse::<Ticks>().unwrap());
        let key = written(|out| time.encode_descending(out));
        assert_eq!(OffsetDateTime::decode_descending(&key).unwrap(), time);
        key
    };
    assert_eq!(newest_first("2014-08-22T00:50:32Z"), "2519936321679999999");
    assert_eq!(newest_first("2014-08-22T00:50:34Z"), "2519936321659999999");
    assert_eq!(newest_first("1970-01-01T00:00:00Z"), "2534023007999999999");
    assert_eq!(newest_first("9999-12-31T23:59:59.9999999Z"), "0".repeat(19));
    assert_eq!(newest_first("0001-01-01T00:00:00Z"), "3155378975999999999");
}

#[test]
fn signed_integers_come_out_exactly() {
    let cases =
        [(i32::MIN, "0000000000"), (-1, "2147483647"), (0, "2147483648"), (i32::MAX, "4294967295")];
    for (number, key) in cases {
        assert_eq!(written(|out| number.encode(out)), key);
    }
    assert_eq!(written(|out| u32::MAX.encode_descending(out)), "0000000000");
    assert_eq!(written(|out| i8::MIN.encode_descending(out)), "255");
    // No key writes a number without a digit.
    assert!(u32::decode_width("").is_err() && i64::decode("").is_err());
}

#[test]
fn escapes_come_out_exactly() {
    assert_eq!(escape("a/b\\c#d?e~f", None), "a~2Fb~5Cc~23d~3Fe~7Ef");
    assert_eq!(escape("tab\there\u{9f}", None), "tab~09here~9F");
    assert_eq!(escape("first_last", Some('_')), "first~5Flast");
    assert_eq!(escape("caf\u{e9}", Some('\u{e9}')), "caf~A0000E9");
    assert_eq!(escape("\u{1f600}!", Some('\u{1f600}')), "~A01F600!");
    // The other form of an escape, small digits and cut ones were not written here.
    for text in ["~A000041", "~E9", "~2f", "~2", "~", "~A0000E", "~ZZ", "~A110000"] {
        assert!(unescape(text).is_err(), "{text}");
    }
}

#[test]
fn buckets_never_change() {
    let golden = [("", 203), ("Sales", 368), ("jonesj", 180), ("0000000223", 176), ("\u{e9}", 990)];
    for (text, expected) in golden {
        assert_eq!((text, bucket(text, 1000)), (text, expected));
    }
    assert_eq!(bucket("anything", 0), 0);
    assert_eq!([1, 10, 11, 16, 100, 101].map(bucket_width), [1, 1, 2, 2, 2, 3]);
}

#[test]
fn buckets_spread() {
    let mut rows = [0_u32; 16];
    for id in 0..16_000_u32 {
        rows[bucket(&written(|out| id.encode(out)), 16) as usize] += 1;
    }
    assert!(rows.iter().all(|rows| (850..1150).contains(rows)), "{rows:?}");
}

#[test]
fn a_form_with_a_gap_gives_back_no_more_than_the_units_before_it() {
    use entable::key::Resolution;
    assert_eq!(resolution_of("%Y%d"), Resolution::Year);
    assert_eq!(resolution_of("%m%d"), Resolution::Year);
    assert_eq!(resolution_of("%Y%m%d"), Resolution::Day);
    assert_eq!(resolution_of("%Y%m%d%H%M%S%f"), Resolution::Tick);
}

#[test]
fn dates_that_are_none_are_refused() {
    for text in ["20140230", "20141301", "00000101", "2014082", "201408222", "2014 822"] {
        assert!(Date::decode(text).is_err(), "{text}");
    }
    assert!(OffsetDateTime::decode("3155378976000000000").is_err());
    assert!(Date::decode_descending("3155378975999999998").is_err(), "not midnight");
}

#[test]
fn successors_pass_over_surrogates_in_their_order() {
    assert_eq!(successor("a\u{d7ff}").as_deref(), Some("a\u{10000}"));
    assert_eq!(successor("a\u{10ffff}").as_deref(), Some("a\u{e000}"));
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{DateTime, NaiveDate, Utc};

    use super::*;

    proptest! {
        #[test]
        fn keys_are_those_of_time(a in times(), b in times()) {
            let of = |time: OffsetDateTime| DateTime::<Utc>::from(Ticks::try_from(time).unwrap());
            check_plain(&of(a), &of(b));
            check_descending(&of(a), &of(b));
            check_plain(&of(a).date_naive(), &of(b).date_naive());
            check_descending(&of(a).date_naive(), &of(b).date_naive());
            prop_assert_eq!(written(|out| of(a).encode(out)), written(|out| a.encode(out)));
            prop_assert_eq!(
                written(|out| of(a).date_naive().encode(out)),
                written(|out| a.date().encode(out))
            );
        }

        #[test]
        fn dates_of_any_year_never_panic(days: i32) {
            if let Some(date) = NaiveDate::from_num_days_from_ce_opt(days) {
                let mut out = String::new();
                let is_held = date.encode(&mut out).is_ok();
                prop_assert_eq!(is_held, (1..=9999).contains(&chrono::Datelike::year(&date)));
            }
        }
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use jiff::{Timestamp, civil::Date};

    use super::*;

    fn of(time: OffsetDateTime) -> Timestamp {
        let ticks = Ticks::try_from(time).unwrap();
        Timestamp::try_from(ticks).unwrap_or(Timestamp::MAX)
    }

    fn date_of(time: OffsetDateTime) -> Date {
        Date::try_from(Ticks::try_from(time.replace_time(time::Time::MIDNIGHT)).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn keys_are_those_of_time(a in times(), b in times()) {
            prop_assume!(of(a) < Timestamp::MAX && of(b) < Timestamp::MAX);
            check_plain(&of(a), &of(b));
            check_descending(&of(a), &of(b));
            check_plain(&date_of(a), &date_of(b));
            check_descending(&date_of(a), &date_of(b));
            prop_assert_eq!(written(|out| of(a).encode(out)), written(|out| a.encode(out)));
            prop_assert_eq!(
                written(|out| date_of(a).encode(out)),
                written(|out| a.date().encode(out))
            );
        }

        #[test]
        fn dates_of_any_year_never_panic(year in -9999_i16..=9999, month in 1_i8..=12, day in 1_i8..=28) {
            let mut out = String::new();
            let is_held = Date::new(year, month, day).unwrap().encode(&mut out).is_ok();
            prop_assert_eq!(is_held, (1..=9999).contains(&year));
        }
    }
}
