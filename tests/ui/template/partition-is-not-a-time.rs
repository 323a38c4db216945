use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "log_{at:%Y%m%d}", row_key = "{id}")]
struct Employee {
    at: time::OffsetDateTime,
    id: u32,
}

fn main() {}
