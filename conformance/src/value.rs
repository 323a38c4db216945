//! Property values: the eight types, their ranges, and null.

use uuid::Uuid;

use crate::setup::{Setup, expected, properties, refused, row};
use entable_core::{
    batch::Operation,
    edm::{EdmType, Ticks, Value},
};

/// Stores the values as one row's properties and reads them back, by point and by query.
async fn come_back(s: &Setup, values: impl IntoIterator<Item = Value>) {
    let names: Vec<String> = (0..252).map(|at| format!("P{at}")).collect();
    let given: Vec<(&str, Value)> = names.iter().map(String::as_str).zip(values).collect();
    s.given("p", "r", &given).await;
    assert_eq!(s.properties("p", "r").await, expected(&given));
    let found = s.matching("PartitionKey eq 'p'").await;
    assert_eq!(properties(&found[0]), expected(&given));
}

async fn comes_back(s: &Setup, value: impl Into<Value>) {
    come_back(s, [value.into()]).await;
}

fn time(text: &str) -> Ticks {
    text.parse().expect("a time")
}

macro_rules! round_trips {
    ($($doc:literal $name:ident: [$($value:expr),*];)*) => {
        $(#[doc = $doc] pub async fn $name(s: &Setup) {
            come_back(s, [$(Value::from($value)),*]).await;
        })*
    };
}

round_trips! {
    "2.1: Edm.Boolean holds true and false." boolean_values: [true, false];
    "2.1: Edm.Int32 holds -2^31 to 2^31-1." int32_range: [i32::MIN, -1, 0, 1, i32::MAX];
    "2.1: Edm.Int64 holds -2^63 to 2^63-1." int64_range: [i64::MIN, -1_i64, 0_i64, i64::MAX];
    "2.1: an Edm.Int64 beyond 2^53 keeps every digit."
        int64_beyond_double: [9_007_199_254_740_993_i64, -9_007_199_254_740_993_i64];
    "2.1: an Edm.Int64 that would fit an Int32 stays an Int64." int64_stays_wide: [5_i64];
    "2.1: Edm.Double is an IEEE 754 double."
        double_range: [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 0.1, 1.0 / 3.0];
    "2.1: a whole Edm.Double stays a Double." double_stays_double: [5.0, -3.0, 1e15];
    "2.1: Edm.Double holds the infinities." double_infinities: [f64::INFINITY, f64::NEG_INFINITY];
    "2.1: Edm.String may be empty." string_empty: [""];
    "2.1: Edm.String is Unicode text, beyond the basic plane as well."
        string_unicode: ["Gr\u{fc}\u{df}e", "\u{65e5}\u{672c}", "\u{1f600}\u{10ffff}", "e\u{301}"];
    "2.1: Edm.String keeps quotes and backslashes." string_quotes: ["'", "''", "\"", "\\", "\\n"];
    "2.1: Edm.String keeps line ends and tabs." string_lines: ["a\nb", "a\r\nb", "\t", "\u{2028}"];
    "2.1: Edm.String keeps NUL and other control characters."
        string_controls: ["\0", "a\0b", "\u{1}\u{1f}\u{7f}\u{85}", "\u{10ffff}\r\n\0"];
    "2.1: Edm.String keeps blanks at both ends." string_blanks: [" ", " a ", "\u{a0}a"];
    "2.1: text that looks like another type stays text."
        string_lookalikes: ["5", "5L", "true", "null", "NaN", "2014-08-22T00:50:32Z",
            "00000000-0000-0000-0000-000000000000", "AAEC"];
    "2.1: Edm.DateTime begins with the year 1601." datetime_first: [Ticks::MIN_PROPERTY];
    "2.1: Edm.DateTime ends with the year 9999." datetime_last: [Ticks::MAX];
    "2.1: Edm.DateTime keeps 100 ns."
        datetime_resolution: [time("2014-08-22T00:50:32.1234567Z"), time("2014-08-22T00:50:32.1234568Z")];
    "2.1: Edm.DateTime without a fraction, and with zeros at its end."
        datetime_trimmed: [time("2014-08-22T00:50:32Z"), time("2014-08-22T00:50:32.2500000Z")];
    "2.1: Edm.DateTime before 1970 keeps its fraction."
        datetime_before_epoch: [time("1969-12-31T23:59:59.9999999Z"), time("1601-01-01T00:00:00.0000001Z")];
    "2.1: Edm.Guid is any 16 bytes."
        guid_values: [Uuid::nil(), Uuid::max(), Uuid::from_u128(0x0123_4567_89ab_cdef_0011_2233_4455_6677)];
    "2.1: Edm.Binary may be empty." binary_empty: [Vec::<u8>::new()];
    "2.1: Edm.Binary is any bytes." binary_values: [(0..=255).collect::<Vec<u8>>(), vec![0; 3], vec![255]];
}

/// 2.1: Edm.Double holds NaN.
pub async fn double_nan(s: &Setup) {
    s.given("p", "r", &[("P", f64::NAN.into())]).await;
    let found = s.properties("p", "r").await;
    assert!(found[0].1.as_f64().is_some_and(f64::is_nan), "{found:?}");
}

/// 2.1: Edm.Double keeps the sign of zero.
pub async fn double_negative_zero(s: &Setup) {
    s.given("p", "r", &[("P", (-0.0).into())]).await;
    let found = s.properties("p", "r").await;
    assert!(found[0].1.as_f64().is_some_and(f64::is_sign_negative), "{found:?}");
}

/// 2.1: a DateTime before 1601 is refused with `OutOfRangeInput`.
pub async fn datetime_too_early(s: &Setup) {
    let early = Ticks::new(Ticks::MIN_PROPERTY.get() - 1).expect("a time");
    let insert = Operation::insert(row("p", "r", &[("P", early.into())]));
    let error = refused(s.one(insert).await, 400, "OutOfRangeInput");
    assert!(error.is_invalid());
    assert!(s.get("p", "r").await.is_none());
}

/// 2.1: one entity can hold all eight types, and each keeps its type.
pub async fn eight_types_in_one_entity(s: &Setup) {
    let given: Vec<(&str, Value)> = vec![
        ("Boolean", true.into()),
        ("Int32", 5.into()),
        ("Int64", 5_i64.into()),
        ("Double", 5.0.into()),
        ("String", "5".into()),
        ("DateTime", time("2014-08-22T00:50:32Z").into()),
        ("Guid", Uuid::from_u128(5).into()),
        ("Binary", vec![5].into()),
    ];
    s.given("p", "r", &given).await;
    let found = s.properties("p", "r").await;
    assert_eq!(found, expected(&given));
    let types: Vec<EdmType> = found.iter().map(|(_, value)| value.edm_type()).collect();
    let by_name: Vec<String> = types.iter().map(|edm| edm.name().replace("Edm.", "")).collect();
    assert!(found.iter().map(|(name, _)| name).eq(&by_name), "{found:?}");
}

/// 2.4: a property that is not given is not stored: it is absent, not null.
pub async fn absent_is_not_stored(s: &Setup) {
    s.given("p", "r", &[("A", 1.into())]).await;
    let row = s.get("p", "r").await.expect("the row is there");
    assert_eq!(row.property_count().ok(), Some(1));
    assert_eq!(row.get("B").ok(), Some(None));
}

/// 2: an entity may have keys and no property.
pub async fn entity_without_properties(s: &Setup) {
    s.given("p", "r", &[]).await;
    assert_eq!(s.properties("p", "r").await, []);
}

/// 2.5: a string of 32,000 UTF-16 units is stored.
pub async fn string_large(s: &Setup) {
    comes_back(s, "x".repeat(32_000)).await;
}

/// 2.5: a string counts by UTF-16 units, not by bytes.
pub async fn string_large_non_ascii(s: &Setup) {
    comes_back(s, "\u{20ac}".repeat(32_000)).await;
}

/// 2.5: a binary of 64 KiB is stored.
pub async fn binary_large(s: &Setup) {
    comes_back(s, vec![7; 64 * 1024]).await;
}
