use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Logins{at:%Y%m}",
    partition_key = "{user}",
    row_key = "{at:desc}",
    list(ByCity, row_key = "city_{city}", in_blob),
    index(ByToken, partition_key = "token_{token}", row_key = "is", unique)
)]
struct Login {
    user: String,
    at: time::OffsetDateTime,
    city: String,
    token: String,
}

fn main() {}
