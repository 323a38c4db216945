use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "a\tb{id}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
