//! Defines the entities.
//!
//! Flights are partitioned by origin and day: some 300 rows that are written and queried together, and no
//! partition takes all writes. Airports and planes are only read by their code, so a hash of the code
//! spreads them over a few partitions.

use entable::prelude::*;
use time::{Date, OffsetDateTime};

/// A scheduled flight from New York.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Flights",
    partition_key = "{origin}_{day:%Y%m%d}",
    row_key = "dep_{sched_dep_time:04}_{carrier}_{flight:04}",
    // A copy of each flight that left, newest first (a log tail), with few fields (a partial copy).
    index(Newest, row_key = "new_{left:desc}_{carrier}_{flight:04}", only(dest, dep_delay), when = has_left)
)]
pub struct Flight {
    pub origin: String,
    /// The day of the schedule, in New York.
    pub day: Date,
    /// Local time as `hhmm`, as all times of this struct except `left`.
    pub sched_dep_time: u16,
    /// Stored as a property too (`store`), so that a query of a day can filter by it.
    #[table(store)]
    pub carrier: String,
    pub flight: u16,
    pub tailnum: Option<String>,
    pub dest: String,
    /// `None` if the flight was cancelled.
    pub dep_time: Option<u16>,
    /// Minutes.
    pub dep_delay: Option<i32>,
    pub sched_arr_time: u16,
    pub arr_time: Option<u16>,
    pub arr_delay: Option<i32>,
    pub air_time: Option<u16>,
    /// Miles.
    pub distance: u16,
    /// Time of departure; of a cancelled flight, the scheduled time.
    pub left: OffsetDateTime,
}

fn has_left(flight: &Flight) -> bool {
    flight.dep_time.is_some()
}

/// The fields that rows of the log tail hold.
#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Flight)]
pub struct Departure {
    pub left: OffsetDateTime,
    pub carrier: String,
    pub flight: u16,
    pub dest: String,
    pub dep_delay: Option<i32>,
}

/// The delay of a flight.
#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Flight)]
pub struct Lateness {
    pub carrier: String,
    pub flight: u16,
    pub arr_delay: Option<i32>,
}

/// An airline, in a partition of its own, because airlines are never queried together.
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
