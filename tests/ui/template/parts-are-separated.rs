use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{id}", row_key = "{name}{department}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
