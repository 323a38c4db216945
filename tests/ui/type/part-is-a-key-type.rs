use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{at}_{id}")]
struct Employee {
    department: String,
    id: u32,
    at: f64,
}

fn main() {}
