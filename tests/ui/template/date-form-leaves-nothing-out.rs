use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{at:%Y%d}")]
struct Employee {
    department: String,
    at: time::OffsetDateTime,
}

fn main() {}
