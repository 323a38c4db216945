//! Flights, alone and with two full copies each.

use entable::prelude::*;
use time::{Date, OffsetDateTime};

/// Flights of an origin and a day: the size of a partition.
const PARTITION: usize = 300;

macro_rules! flight {
    ($(#[$table:meta])* $name:ident) => {
        #[derive(Debug, Clone, TableEntity)]
        $(#[$table])*
        pub(crate) struct $name {
            pub(crate) origin: String,
            pub(crate) day: Date,
            pub(crate) carrier: String,
            pub(crate) flight: u32,
            pub(crate) tailnum: Option<String>,
            pub(crate) dest: String,
            pub(crate) booking: String,
            pub(crate) dep_time: Option<u16>,
            pub(crate) dep_delay: Option<i32>,
            pub(crate) sched_dep_time: u16,
            pub(crate) sched_arr_time: u16,
            pub(crate) arr_time: Option<u16>,
            pub(crate) arr_delay: Option<i32>,
            pub(crate) air_time: Option<u16>,
            pub(crate) distance: u16,
            pub(crate) left: OffsetDateTime,
        }

        impl $name {
            /// The flight of that number.
            pub(crate) fn of(number: usize) -> Self {
                let number32 = number as u32;
                let day = time::macros::date!(2013 - 01 - 01)
                    + time::Duration::days((number / PARTITION) as i64);
                let minutes = (number % 1_000) as u16;
                Self {
                    origin: "JFK".into(),
                    day,
                    carrier: ["UA", "DL", "AA", "B6"][number % 4].into(),
                    flight: number32,
                    tailnum: Some(format!("N{}", 10_000 + number % 4_000)),
                    dest: ["ATL", "LAX", "ORD", "BOS", "MIA"][number % 5].into(),
                    booking: format!("BOOK{number:08}"),
                    dep_time: Some(minutes),
                    dep_delay: Some((number % 90) as i32 - 20),
                    sched_dep_time: minutes,
                    sched_arr_time: minutes + 120,
                    arr_time: Some(minutes + 130),
                    arr_delay: (number % 9 != 0).then_some(10),
                    air_time: Some(110),
                    distance: 760,
                    left: OffsetDateTime::UNIX_EPOCH + time::Duration::minutes(number as i64),
                }
            }
        }
    };
}

flight! {
    #[table(
        name = "Flights",
        partition_key = "{origin}_{day:%Y%m%d}",
        row_key = "flight_{carrier}_{flight:08}"
    )]
    Plain
}

flight! {
    #[table(
        name = "Flights",
        partition_key = "{origin}_{day:%Y%m%d}",
        row_key = "flight_{carrier}_{flight:08}",
        index(ByDest, row_key = "dest_{dest}_{flight:08}"),
        index(ByBooking, row_key = "book_{booking:lower}", unique)
    )]
    Indexed
}
