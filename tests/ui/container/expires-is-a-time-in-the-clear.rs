use entable::prelude::*;
use time::{Date, OffsetDateTime};

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "a_{id:06}", expires = untill)]
struct Misspelt {
    user: String,
    id: u32,
    until: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "b_{id:06}", expires = "until")]
struct Quoted {
    user: String,
    id: u32,
    until: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "c_{id:06}", expires = until)]
struct Encrypted {
    user: String,
    id: u32,
    #[table(encrypt)]
    until: Option<OffsetDateTime>,
}

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "d_{id:06}", expires = day)]
struct Day {
    user: String,
    id: u32,
    day: Option<Date>,
}

#[derive(TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "e_{id:06}",
    expires = until,
    index(ByToken, row_key = "token_{token}", only(id))
)]
struct LeftOut {
    user: String,
    id: u32,
    token: String,
    until: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "f_{id:06}", expires = until, wide)]
struct Wide {
    user: String,
    id: u32,
    page: String,
    #[table(part = 2)]
    until: OffsetDateTime,
}

fn main() {}
