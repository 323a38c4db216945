//! Tests the forms of key parts: the texts that they write, and the values that they read back.

use entable::{Row, prelude::*};
use time::{
    Date, OffsetDateTime,
    macros::{date, datetime},
};
use uuid::Uuid;

use crate::{keys, properties};

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Widths", partition_key = "{id}", row_key = "empid_{id:06}_{year:04}")]
struct Width {
    id: u32,
    year: u16,
}

#[test]
fn a_width_is_zero_padded_and_refuses_what_is_too_wide() {
    let width = Width { id: 123, year: 2012 };
    let row = width.to_row().unwrap();
    assert_eq!(keys(&row), ("0000000123", "empid_000123_2012"));
    assert_eq!(Width::from_row(&row).unwrap(), width);
    let error = Width { id: 1_000_000, year: 2012 }.to_row().unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(error.property(), Some("Id"));
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Logs", partition_key = "{host}", row_key = "{at:desc}_{number:desc}")]
struct Descending {
    host: String,
    at: OffsetDateTime,
    number: i32,
}

#[test]
fn the_newest_comes_first() {
    let at = datetime!(2014-08-22 00:50:32 UTC);
    let entry = Descending { host: "a".into(), at, number: 5 };
    let row = entry.to_row().unwrap();
    assert_eq!(row.row_key(), "2519936321679999999_2147483642");
    assert_eq!(Descending::from_row(&row).unwrap(), entry);
    assert_eq!(properties(&row), ["EntityType"]);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(
    name = "Days",
    partition_key = "{day:%Y%m}-{host}",
    row_key = "{day:%Y-%m-%d}_{at:%Y%m%d%H%M%S%f}"
)]
struct Dates {
    host: String,
    day: Date,
    at: OffsetDateTime,
}

#[test]
fn a_date_form_as_fine_as_its_type_gives_the_field_back() {
    let dates = Dates {
        host: "h".into(),
        day: date!(2014 - 08 - 22),
        at: datetime!(2014-08-22 00:50:32.1234567 UTC),
    };
    let row = dates.to_row().unwrap();
    assert_eq!(keys(&row), ("201408-h", "2014-08-22_201408220050321234567"));
    assert_eq!(properties(&row), ["EntityType"]);
    assert_eq!(Dates::from_row(&row).unwrap(), dates);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(
    name = "Lossy",
    partition_key = "{id:bucket(16)}",
    row_key = "{email:lower}_{at:%Y%m%d}_{id}"
)]
struct Lossy {
    id: Uuid,
    email: String,
    at: OffsetDateTime,
}

#[test]
fn fields_with_lossy_parts_only_are_stored_as_well() {
    let lossy = Lossy {
        id: Uuid::nil(),
        email: "JonesJ@Contoso.com".into(),
        at: datetime!(2014-08-22 00:50:32 UTC),
    };
    let row = lossy.to_row().unwrap();
    assert_eq!(row.row_key(), "jonesj@contoso.com_20140822_00000000-0000-0000-0000-000000000000");
    let bucket: u32 = row.partition_key().parse().unwrap();
    assert!(row.partition_key().len() == 2 && bucket < 16);
    assert_eq!(properties(&row), ["EntityType", "Email", "At"]);
    assert_eq!(Lossy::from_row(&row).unwrap(), lossy);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Texts", partition_key = "{{{a}}}", row_key = "{a}_{b}")]
struct Texts {
    a: String,
    b: String,
}

#[test]
fn a_text_before_a_literal_is_escaped() {
    let texts = Texts { a: "x_y/~}".into(), b: "p_q".into() };
    let row = texts.to_row().unwrap();
    assert_eq!(keys(&row), ("{x_y~2F~7E~7D}", "x~5Fy~2F~7E}_p_q"));
    assert_eq!(Texts::from_row(&row).unwrap(), texts);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Digits", partition_key = "p", row_key = "{a}2{b}F{c}")]
struct Digits {
    a: String,
    b: String,
    c: String,
}

#[test]
fn a_literal_of_digits_ends_a_text_too() {
    let digits = Digits { a: "12~/".into(), b: "2F/F".into(), c: "F2".into() };
    let row = digits.to_row().unwrap();
    assert_eq!(Digits::from_row(&row).unwrap(), digits);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Settings", partition_key = "settings", row_key = "only")]
struct Single {
    text: String,
}

#[test]
fn a_key_may_be_literal_text_alone() {
    let row = Single { text: "t".into() }.to_row().unwrap();
    assert_eq!(keys(&row), ("settings", "only"));
    assert_eq!(Single::primary().keys().as_point(), Some(("settings", "only")));
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(name = "Hot", partition_key = "{at:%Y%m%d%H}", row_key = "{id}", allow(hot_partition))]
struct Hot {
    at: OffsetDateTime,
    id: u64,
}

#[test]
fn a_partition_by_time_may_be_allowed() {
    let at = datetime!(2014-08-22 00:50:32 UTC);
    let row = Hot { at, id: 1 }.to_row().unwrap();
    assert_eq!(keys(&row), ("2014082200", "00000000000000000001"));
    assert_eq!(Hot::from_row(&row).unwrap(), Hot { at, id: 1 });
}

#[test]
fn a_key_that_the_template_cannot_have_written_is_refused() {
    let row = Row::build("1", "empid_12_2012").finish().unwrap();
    assert!(Width::from_row(&row).unwrap_err().is_decode());
}
