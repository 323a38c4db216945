//! Reads the entities from lines of the files.

use time::{Date, Duration, Month, OffsetDateTime};

use crate::{
    flight::{Airline, Airport, Flight, Plane},
    line::{BadField, Line, Record},
};

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

/// Reads `year`, `month` and `day`.
fn day(line: &mut Line<'_>) -> Result<Date, BadField> {
    let year = line.value("a year")?;
    let month: u8 = line.value("a month")?;
    let month = Month::try_from(month).map_err(|_| line.reject("expected a month of 1 to 12"))?;
    let day = line.value("a day")?;
    Date::from_calendar_date(year, month, day).map_err(|error| line.reject(error.to_string()))
}

/// Reads `time_hour`, the hour of the schedule in UTC, and `minute`.
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
