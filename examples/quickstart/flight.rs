//! The entities.
//!
//! Flights are partitioned by origin and day: some 300 rows that are written and asked for together,
//! and no partition that takes all writes. Airports and planes are only ever found by their code, so
//! that they are spread over a few partitions by a hash of it.

use entable::prelude::*;
use time::{Date, OffsetDateTime};

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
