use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByDay, partition_key = "{day:%Y%m%d}{name}", row_key = "at_{name}_{department}{id:06}")
)]
struct Person {
    department: String,
    id: u32,
    day: time::OffsetDateTime,
    name: String,
}

fn main() {}
