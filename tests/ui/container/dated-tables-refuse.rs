use entable::prelude::*;
use time::OffsetDateTime;

#[derive(TableEntity)]
#[table(
    name = "Logs{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "log_{id:06}",
    index(ByTown, table = "Towns", partition_key = "{town}", row_key = "{user}_{id:06}"),
    index(ByMail, partition_key = "mail_{mail}", row_key = "mail", unique),
    index(ByMonth, table = "Months{at:%Y%m}", partition_key = "{town}", row_key = "{user}_{id:06}"),
    index(ByDigit, table = "Days1{at:%Y%m%d}", partition_key = "{town}", row_key = "{user}_{id:06}"),
    list(InBlobs, row_key = "town_{town}", in_blob)
)]
struct Login {
    user: String,
    id: u32,
    town: String,
    mail: String,
    at: OffsetDateTime,
    #[table(blob)]
    photo: Option<Blob>,
}

fn main() {}
