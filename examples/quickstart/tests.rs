//! Tests of lines that do not parse, and of the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use crate::{
    csv::{self, CsvError},
    flight::{Airline, Flight, Plane},
    line::Record,
    load::Data,
    options::Options,
};

const HEADING: &str = "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour";
const LINE: &str =
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z";

fn read<T: Record>(content: impl AsRef<[u8]>) -> Result<Vec<T>, CsvError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flights.csv");
    std::fs::write(&file, content).unwrap();
    csv::read(&file)
}

/// Returns the error of a file, without its directory.
fn refused<T: Record>(content: impl AsRef<[u8]>) -> String {
    let error = read::<T>(content).err().unwrap().to_string();
    error.rsplit_once('/').map_or(error.clone(), |(_, error)| error.to_owned())
}

/// Returns the error when `text` replaces a field of the second line after the heading.
fn with_field(column: usize, text: &str) -> String {
    let mut fields: Vec<&str> = LINE.split(',').collect();
    *fields.get_mut(column - 1).unwrap() = text;
    refused::<Flight>(format!("{HEADING}\n{LINE}\n{}\n", fields.join(",")))
}

#[test]
fn a_missing_value_is_none() {
    let cancelled =
        "2013,1,2,NA,1545,NA,NA,1910,NA,AA,133,NA,JFK,LAX,NA,2475,15,45,2013-01-02T20:00:00Z";
    let flights: Vec<Flight> = read(format!("{HEADING}\n{LINE}\n{cancelled}\n")).unwrap();
    let delays: Vec<_> = flights.iter().map(|flight| (flight.dep_delay, &flight.tailnum)).collect();
    assert_eq!(delays, [(Some(2), &Some("N14228".to_owned())), (None, &None)]);
    assert_eq!(flights.last().unwrap().left, time::macros::datetime!(2013-01-02 20:45 UTC));
}

#[test]
fn a_bad_field_is_named_with_file_line_and_column() {
    let cases = [
        (15, "abc", "column 15 (air_time): expected a number or NA, found `abc`"),
        (16, "NA", "column 16 (distance): expected a number, found `NA`"),
        (16, "-1", "column 16 (distance): expected a number, found `-1`"),
        (11, "99999", "column 11 (flight): expected a number, found `99999`"),
        (10, "", "column 10 (carrier): expected a text, found ``"),
        (2, "13", "column 2 (month): expected a month of 1 to 12"),
        (
            19,
            "noon",
            "column 19 (time_hour): expected a time such as 2013-01-01T10:00:00Z, found `noon`",
        ),
    ];
    for (column, text, expected) in cases {
        assert_eq!(with_field(column, text), format!("flights.csv, line 3, {expected}"));
    }
    assert!(with_field(3, "32").starts_with("flights.csv, line 3, column 3 (day): "));
}

#[test]
fn a_line_of_another_length_is_refused() {
    assert_eq!(
        refused::<Airline>("carrier,name\n9E,Endeavor\nAA\n"),
        "flights.csv, line 3, column 2 (name): expected 2 fields, found 1"
    );
    assert_eq!(
        refused::<Airline>("carrier,name\n9E,Endeavor,Air\n"),
        "flights.csv, line 2, column 3 (no such column): expected 2 fields, found 3"
    );
}

#[test]
fn a_missing_column_is_refused() {
    assert_eq!(
        refused::<Airline>("carrier\n9E\n"),
        "flights.csv, line 1, column 2 (no such column): expected a column `name`, found none of that name"
    );
}

#[test]
fn other_bytes_than_utf_8_are_refused() {
    assert_eq!(
        refused::<Airline>(b"carrier,name\n9E,\xff\n"),
        "flights.csv, line 2, column 2 (name): expected UTF-8, found other bytes"
    );
}

#[test]
fn columns_are_found_by_name_and_quotes_are_taken_off() {
    let planes: Vec<Plane> =
        read("seats,model,manufacturer,speed,tailnum,year\n55,\"A, B\",X,NA,N1,NA\n").unwrap();
    let plane = planes.first().unwrap();
    assert_eq!((plane.seats, &*plane.model, plane.year), (55, "A, B", None));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Data::read(&PathBuf::from("/nowhere")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read /nowhere/airlines.csv: "), "{error}");
}

#[test]
fn options_are_read() {
    let parse = |line: &str| Options::parse(line.split_whitespace().map(ToOwned::to_owned));
    let options = parse("--db a.db --data year").unwrap().unwrap();
    assert_eq!(options, Options { db: Some("a.db".into()), azure: false, data: "year".into() });
    assert!(parse("--azure").unwrap().unwrap().azure);
    assert!(parse("--azure --db a.db").unwrap_err().to_string().contains("give one of them"));
    assert!(parse("--help").unwrap().is_none());
    assert_eq!(parse("--db").unwrap_err().to_string(), "--db needs a path");
    assert_eq!(parse("--dbs").unwrap_err().to_string(), "no such option: --dbs; see --help");
}
