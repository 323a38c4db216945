use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "staff_table", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
