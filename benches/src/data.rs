//! The flights of the quickstart.

use std::path::{Path, PathBuf};

use crate::{csv, flight::Flight};

/// Flights of the year.
pub(crate) const YEAR: usize = 336_776;

fn week_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/flights.csv")
}

/// The first week of the year.
pub(crate) fn week() -> Vec<Flight> {
    csv::read(&week_file()).unwrap()
}

/// A file of the year's flights: the real one, or the first week again and again. The second takes
/// one of the first's lines and puts it weeks later.
pub(crate) fn year_file(given: Option<&Path>, directory: &Path) -> PathBuf {
    if let Some(given) = given {
        return given.join("flights.csv");
    }
    let text = std::fs::read_to_string(week_file()).unwrap();
    let (heading, lines) = text.split_once('\n').unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let mut year = format!("{heading}\n");
    for number in 0..YEAR {
        let line = lines.get(number % lines.len()).unwrap();
        let day = |text: &str| text.parse::<i64>().unwrap();
        let mut fields: Vec<String> = line.split(',').map(ToOwned::to_owned).collect();
        let weeks = time::Duration::weeks((number / lines.len()) as i64);
        let date = time::macros::date!(2012 - 12 - 31)
            + time::Duration::days(day(fields.get(2).unwrap()))
            + weeks;
        let hour: entable::Ticks = fields.get(18).unwrap().parse().unwrap();
        let later = time::OffsetDateTime::from(hour) + weeks;
        let changed = [
            (0, date.year().to_string()),
            (1, u8::from(date.month()).to_string()),
            (2, date.day().to_string()),
            (18, entable::Ticks::try_from(later).unwrap().to_string()),
        ];
        for (at, text) in changed {
            *fields.get_mut(at).unwrap() = text;
        }
        year.push_str(&fields.join(","));
        year.push('\n');
    }
    let file = directory.join("flights.csv");
    std::fs::write(&file, year).unwrap();
    file
}
