use entable::prelude::*;
use time::OffsetDateTime;

#[derive(TableEntity)]
#[table(name = "Logs", partition_key = "{host}_{at:%Y%m%d}", row_key = "{at:desc}")]
struct Log {
    host: String,
    at: OffsetDateTime,
}

// Midnight could mean the day or the instant. Both are refused.
fn paths(day: OffsetDateTime) {
    let _ = Log::primary().host("web").at(day);
    let month = Log::primary().host("web").at_period(day);
    let _ = month.at(day);
}

fn main() {
    let _ = paths;
}
