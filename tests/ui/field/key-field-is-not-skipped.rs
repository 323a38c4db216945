use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    #[table(skip)]
    id: u32,
}

fn main() {}
