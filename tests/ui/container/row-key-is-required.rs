use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
