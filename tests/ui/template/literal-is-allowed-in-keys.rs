use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "emp/{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
