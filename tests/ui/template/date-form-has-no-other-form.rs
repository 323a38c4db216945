use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Orders", partition_key = "{customer}", row_key = "order_{at:%Y%m%d:desc}")]
struct Order {
    customer: String,
    at: time::OffsetDateTime,
}

fn main() {}
