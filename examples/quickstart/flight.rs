//! The entities, and how they are read from the files.
//!
//! Flights are partitioned by origin and day: some 300 rows that are written and asked for together,
//! and no partition that takes all writes. Airports and planes are only ever found by their code, so
//! that they are spread over a few partitions by a hash of it.

use entable::prelude::*;
use time::{Date, Duration, Month, OffsetDateTime};

use crate::csv::{BadField, Line, Record};

/// A flight that left New York, or should have.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Flights",
    partition_key = "{origin}_{day:%Y%m%d}",
    row_key = "dep_{sched_dep_time:04}_{carrier}_{flight:04}",
    // The log tail: the same partition once more, newest first, without the cancelled flights.
    index(Newest, row_key = "new_{left:desc}_{carrier}_{flight:04}", only(dest, dep_delay), when = has_left)
)]
pub struct Flight {
    pub origin: String,
    /// The day of the schedule, in New York.
    pub day: Date,
    /// Local time as `hhmm`, as all times here but `left`.
    pub sched_dep_time: u16,
    /// Stored beside the keys too, so that a whole day is filtered by it.
    #[table(store)]
    pub carrier: String,
    pub flight: u16,
    pub tailnum: Option<String>,
    pub dest: String,
    /// `None`: the flight was cancelled.
    pub dep_time: Option<u16>,
    /// Minutes.
    pub dep_delay: Option<i32>,
    pub sched_arr_time: u16,
    pub arr_time: Option<u16>,
    pub arr_delay: Option<i32>,
    pub air_time: Option<u16>,
    /// Miles.
    pub distance: u16,
    /// When it left, or should have.
    pub left: OffsetDateTime,
}

fn has_left(flight: &Flight) -> bool {
    flight.dep_time.is_some()
}

/// What the log tail's rows hold.
#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Flight)]
pub struct Departure {
    pub left: OffsetDateTime,
    pub carrier: String,
    pub flight: u16,
    pub dest: String,
    pub dep_delay: Option<i32>,
}

/// How late a flight was.
#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Flight)]
pub struct Lateness {
    pub carrier: String,
    pub flight: u16,
    pub arr_delay: Option<i32>,
}

/// An airline: a partition of its own for each, which no one ever asks for together.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Airlines", partition_key = "{carrier}", row_key = "airline")]
pub struct Airline {
    pub carrier: String,
    pub name: String,
}

/// An airport.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Airports", partition_key = "{faa:bucket(4)}", row_key = "{faa}")]
pub struct Airport {
    pub faa: String,
    pub name: String,
    pub lat: f64,
    pub lon: f64,
    /// Feet.
    pub alt: i32,
    pub tzone: Option<String>,
}

/// A plane.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Planes", partition_key = "{tailnum:bucket(8)}", row_key = "{tailnum}")]
pub struct Plane {
    pub tailnum: String,
    pub year: Option<u16>,
    pub manufacturer: String,
    pub model: String,
    pub seats: u16,
    /// Knots.
    pub speed: Option<u16>,
}

const NUMBER: &str = "a number or NA";

impl Record for Flight {
    const COLUMNS: &'static [&'static str] = &[
        "year",
        "month",
        "day",
        "time_hour",
        "minute",
        "origin",
        "sched_dep_time",
        "carrier",
        "flight",
        "tailnum",
        "dest",
        "dep_time",
        "dep_delay",
        "sched_arr_time",
        "arr_time",
        "arr_delay",
        "air_time",
        "distance",
    ];

    fn read(line: &mut Line<'_>) -> Result<Self, BadField> {
        let day = day(line)?;
        let scheduled = scheduled(line)?;
        let mut flight = Self {
            day,
            origin: line.text()?,
            sched_dep_time: line.value("a time such as 517")?,
            carrier: line.text()?,
            flight: line.value("a number")?,
            tailnum: line.optional_text()?,
            dest: line.text()?,
            dep_time: line.optional(NUMBER)?,
            dep_delay: line.optional(NUMBER)?,
            sched_arr_time: line.value("a time such as 517")?,
            arr_time: line.optional(NUMBER)?,
            arr_delay: line.optional(NUMBER)?,
            air_time: line.optional(NUMBER)?,
            distance: line.value("a number")?,
            left: scheduled,
        };
        flight.left += Duration::minutes(flight.dep_delay.unwrap_or_default().into());
        Ok(flight)
    }
}

/// `year`, `month` and `day`.
fn day(line: &mut Line<'_>) -> Result<Date, BadField> {
    let year = line.value("a year")?;
    let month: u8 = line.value("a month")?;
    let month = Month::try_from(month).map_err(|_| line.reject("expected a month of 1 to 12"))?;
    let day = line.value("a day")?;
    Date::from_calendar_date(year, month, day).map_err(|error| line.reject(error.to_string()))
}

/// `time_hour`, the hour of the schedule in UTC, and `minute`.
fn scheduled(line: &mut Line<'_>) -> Result<OffsetDateTime, BadField> {
    let hour: entable::Ticks = line.value("a time such as 2013-01-01T10:00:00Z")?;
    let minute: i64 = line.value("a minute")?;
    Ok(OffsetDateTime::from(hour) + Duration::minutes(minute))
}

impl Record for Airline {
    const COLUMNS: &'static [&'static str] = &["carrier", "name"];

    fn read(line: &mut Line<'_>) -> Result<Self, BadField> {
        Ok(Self { carrier: line.text()?, name: line.text()? })
    }
}

impl Record for Airport {
    const COLUMNS: &'static [&'static str] = &["faa", "name", "lat", "lon", "alt", "tzone"];

    fn read(line: &mut Line<'_>) -> Result<Self, BadField> {
        Ok(Self {
            faa: line.text()?,
            name: line.text()?,
            lat: line.value("degrees")?,
            lon: line.value("degrees")?,
            alt: line.value("feet")?,
            tzone: line.optional_text()?,
        })
    }
}

impl Record for Plane {
    const COLUMNS: &'static [&'static str] =
        &["tailnum", "year", "manufacturer", "model", "seats", "speed"];

    fn read(line: &mut Line<'_>) -> Result<Self, BadField> {
        Ok(Self {
            tailnum: line.text()?,
            year: line.optional(NUMBER)?,
            manufacturer: line.text()?,
            model: line.text()?,
            seats: line.value("a number")?,
            speed: line.optional(NUMBER)?,
        })
    }
}
