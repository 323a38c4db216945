//! Tests user types with the names of standard types.
#![allow(dead_code, non_camel_case_types)]

use entable::prelude::*;

type Result = ();
type Vec = ();
type Box = ();
struct Ok;
struct Err;
struct Some;
struct None;
struct V;
struct Clone;
struct Default;
struct From;
struct Into;
trait Debug {}

/// A type with the name of an option, which is none.
#[derive(Debug_, EdmEnum)]
enum Option {
    Yes,
}
use std::fmt::Debug as Debug_;

/// Text, but not the usual one.
#[derive(EdmEnum)]
enum String {
    Short,
}

/// Types of fields whose names generated code imports with a prefix.
#[derive(Debug_, PartialEq, EdmEnum)]
enum Row {
    Upper,
}

#[derive(Debug_, PartialEq, EdmEnum)]
enum Column {
    Left,
}

#[derive(Debug_, PartialEq, EdmEnum)]
enum Point {
    Far,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{option}", row_key = "{string}_{id}")]
struct Employee {
    row: Row,
    column: Column,
    point: Point,
    option: Option,
    string: String,
    id: u32,
    other: String,
    real: std::option::Option<String>,
}

#[derive(Properties)]
struct Slots {
    other: String,
    choice: Option,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Patch {
    other: String,
}

#[test]
fn a_row_and_back() {
    let employee = Employee {
        row: Row::Upper,
        column: Column::Left,
        point: Point::Far,
        option: Option::Yes,
        string: String::Short,
        id: 1,
        other: String::Short,
        real: std::option::Option::None,
    };
    let row = employee.to_row().unwrap();
    assert_eq!((row.partition_key(), row.row_key()), ("Yes", "Short_0000000001"));
    let back = Employee::from_row(&row).unwrap();
    assert_eq!((back.row, back.column, back.point), (Row::Upper, Column::Left, Point::Far));
    assert!(matches!(Patch::from_row(&row).unwrap().other, String::Short));
}
