//! Series and long texts in every place that they may stand.
#![allow(dead_code)]

use entable::prelude::*;

#[derive(Debug, Default, Clone, PartialEq, EdmEnum)]
enum Mood {
    #[default]
    Fine,
    Tired,
}

#[derive(Debug, Properties)]
struct Address {
    city: String,
}

#[derive(Debug, TableEntity)]
#[table(
    name = "Years",
    partition_key = "{employee:06}",
    row_key = "{year:04}",
    index(ByYear, row_key = "year_{year:04}", except(days)),
    drop_unknown
)]
struct Year {
    employee: u32,
    year: u16,
    #[table(series("Day{:03}"))]
    days: [Option<i64>; 100],
    #[table(series, rename = "Month")]
    r#months: [f64; 12],
    #[table(series)]
    moods: [Mood; 7],
    #[table(series, encrypt)]
    pay: [Option<i32>; 12],
    #[table(split(2))]
    text: Option<String>,
    #[table(split(15), encrypt)]
    bytes: Vec<u8>,
    #[table(split(3), json, encrypt(pad = 64))]
    list: Vec<String>,
    #[table(flatten)]
    address: Address,
    #[table(extra)]
    extra: Bag,
}

#[derive(Debug, Projection)]
#[table(of = Year)]
struct Some3 {
    months: [f64; 12],
    text: Option<String>,
    moods: [Mood; 7],
}

/// Changes, filters and reads series.
pub fn main() {
    let _ = Year::patch()
        .days(3, 4_i64)
        .remove_days(4)
        .months(0, 1.5)
        .moods(6, Mood::Tired)
        .pay(1, 2)
        .remove_pay(0)
        .text("text")
        .remove_text()
        .bytes(vec![1_u8])
        .list(vec!["a".to_owned()]);
    let _ = Year::DAYS.at(13).ge(5_i64) & Year::MOODS.at(0).eq(Mood::Fine);
}
