use entable::prelude::*;
use time::{Date, OffsetDateTime};

#[derive(TableEntity)]
#[table(name = "Logs{at:%Y}", partition_key = "{user}", row_key = "{id:06}")]
struct Unknown {
    user: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Logs{at:%Y-%m}", partition_key = "{user}", row_key = "{id:06}")]
struct TextBetween {
    user: String,
    id: u32,
    at: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Logs{at:%Y}Old", partition_key = "{user}", row_key = "{id:06}")]
struct TextBehind {
    user: String,
    id: u32,
    at: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Logs2{at:%Y}", partition_key = "{user}", row_key = "{id:06}")]
struct DigitBefore {
    user: String,
    id: u32,
    at: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Logs{on:%Y%m%d%H}", partition_key = "{user}", row_key = "{id:06}")]
struct DateWithoutHours {
    user: String,
    id: u32,
    on: Date,
}

fn main() {}
