use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{id}", row_key = "{department:06}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
