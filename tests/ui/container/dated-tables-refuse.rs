use entable::prelude::*;
use time::OffsetDateTime;

#[derive(TableEntity)]
#[table(
    name = "Logs{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "log_{id:06}",
    index(ByTown, table = "Towns", partition_key = "{town}", row_key = "{user}_{id:06}"),
    index(ByMail, partition_key = "mail_{mail}", row_key = "mail", unique),
    list(ByTownList, row_key = "town_{town}")
)]
struct Login {
    user: String,
    id: u32,
    town: String,
    mail: String,
    at: OffsetDateTime,
}

fn main() {}
