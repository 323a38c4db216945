use entable::prelude::*;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Ab {
    department: String,
    id: u32,
}

fn main() {}
