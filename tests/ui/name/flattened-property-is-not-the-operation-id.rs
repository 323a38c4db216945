use entable::prelude::*;

#[derive(Properties)]
struct Parts {
    id: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten(prefix = "Op"))]
    parts: Parts,
}

fn main() {}
