//! Tests how a stored value compares with a literal, for every pair of types.

use uuid::Uuid;

use crate::setup::Setup;
use entable_core::{
    edm::{Ticks, Value},
    filter::{Comparison, Filter},
};

/// Three values of a type in ascending order; the middle one, or the only one of its kind, is 5 or
/// stands for it.
type Values = [Value; 3];

fn boolean() -> Values {
    [false.into(), true.into(), true.into()]
}

fn int32() -> Values {
    [4.into(), 5.into(), 6.into()]
}

fn int64() -> Values {
    [4_i64.into(), 5_i64.into(), 6_i64.into()]
}

fn double() -> Values {
    [4.5.into(), 5.0.into(), 5.5.into()]
}

fn string() -> Values {
    ["10".into(), "5".into(), "5a".into()]
}

fn datetime() -> Values {
    let at = Ticks::UNIX_EPOCH.get();
    [at - 1, at, at + 1].map(|ticks| Ticks::new(ticks).expect("a time").into())
}

fn guid() -> Values {
    [4, 5, 6].map(|n| Uuid::from_u128(n).into())
}

fn binary() -> Values {
    [vec![4, 255], vec![5], vec![5, 0]].map(Value::from)
}

const ALL: [Comparison; 6] = [
    Comparison::Eq,
    Comparison::Ne,
    Comparison::Gt,
    Comparison::Ge,
    Comparison::Lt,
    Comparison::Le,
];

/// Stores the three values and compares each with the literal in all six ways.
async fn compare(
    s: &Setup,
    stored: &Values,
    literal: &Value,
    holds: impl Fn(Comparison, usize) -> bool,
) {
    let keys = ["0", "1", "2"];
    for (key, value) in keys.iter().zip(stored) {
        s.given("p", key, &[("P", value.clone())]).await;
    }
    for comparison in ALL {
        let text = Filter::compare("P", comparison, literal.clone()).to_string();
        let expected: Vec<&str> =
            (0..3).filter(|at| holds(comparison, *at)).map(|at| keys[at]).collect();
        s.finds(&text, &expected).await;
    }
}

/// The middle value equals the literal; the others are below and above it.
async fn by_value(s: &Setup, stored: Values, literal: Values) {
    compare(s, &stored, &literal[1], |comparison, at| {
        let place = if stored[at] == stored[1] { 1 } else { at };
        match comparison {
            Comparison::Eq => place == 1,
            Comparison::Ne => place != 1,
            Comparison::Gt => place > 1,
            Comparison::Ge => place >= 1,
            Comparison::Lt => place < 1,
            Comparison::Le => place <= 1,
        }
    })
    .await;
}

/// Every stored value is below the literal.
async fn below(s: &Setup, stored: Values, literal: Values) {
    compare(s, &stored, &literal[1], |comparison, _| {
        matches!(comparison, Comparison::Ne | Comparison::Lt | Comparison::Le)
    })
    .await;
}

macro_rules! pairs {
    ($($name:ident: $how:ident($stored:ident, $literal:ident);)*) => {
        $(#[doc = concat!("4.3: an ", stringify!($stored), " property against an ",
            stringify!($literal), " literal: ", stringify!($how), ".")]
        pub async fn $name(s: &Setup) {
            $how(s, $stored(), $literal()).await;
        })*
    };
}

pairs! {
    boolean_with_boolean: by_value(boolean, boolean);
    boolean_below_int32: below(boolean, int32);
    boolean_below_int64: below(boolean, int64);
    boolean_below_double: below(boolean, double);
    boolean_below_string: below(boolean, string);
    boolean_below_datetime: below(boolean, datetime);
    boolean_below_guid: below(boolean, guid);
    boolean_below_binary: below(boolean, binary);
    int32_below_boolean: below(int32, boolean);
    int32_with_int32: by_value(int32, int32);
    int32_below_int64: below(int32, int64);
    int32_below_double: below(int32, double);
    int32_below_string: below(int32, string);
    int32_below_datetime: below(int32, datetime);
    int32_below_guid: below(int32, guid);
    int32_below_binary: below(int32, binary);
    int64_below_boolean: below(int64, boolean);
    int64_with_int32: by_value(int64, int32);
    int64_with_int64: by_value(int64, int64);
    int64_below_double: below(int64, double);
    int64_below_string: below(int64, string);
    int64_below_datetime: below(int64, datetime);
    int64_below_guid: below(int64, guid);
    int64_below_binary: below(int64, binary);
    double_below_boolean: below(double, boolean);
    double_with_int32: by_value(double, int32);
    double_with_int64: by_value(double, int64);
    double_with_double: by_value(double, double);
    double_below_string: below(double, string);
    double_below_datetime: below(double, datetime);
    double_below_guid: below(double, guid);
    double_below_binary: below(double, binary);
    string_below_boolean: below(string, boolean);
    string_below_int32: below(string, int32);
    string_below_int64: below(string, int64);
    string_below_double: below(string, double);
    string_with_string: by_value(string, string);
    string_below_datetime: below(string, datetime);
    string_below_guid: below(string, guid);
    string_below_binary: below(string, binary);
    datetime_below_boolean: below(datetime, boolean);
    datetime_below_int32: below(datetime, int32);
    datetime_below_int64: below(datetime, int64);
    datetime_below_double: below(datetime, double);
    datetime_below_string: below(datetime, string);
    datetime_with_datetime: by_value(datetime, datetime);
    datetime_below_guid: below(datetime, guid);
    datetime_below_binary: below(datetime, binary);
    guid_below_boolean: below(guid, boolean);
    guid_below_int32: below(guid, int32);
    guid_below_int64: below(guid, int64);
    guid_below_double: below(guid, double);
    guid_below_string: below(guid, string);
    guid_below_datetime: below(guid, datetime);
    guid_with_guid: by_value(guid, guid);
    guid_below_binary: below(guid, binary);
    binary_below_boolean: below(binary, boolean);
    binary_below_int32: below(binary, int32);
    binary_below_int64: below(binary, int64);
    binary_below_double: below(binary, double);
    binary_below_string: below(binary, string);
    binary_below_datetime: below(binary, datetime);
    binary_below_guid: below(binary, guid);
    binary_with_binary: by_value(binary, binary);
}
