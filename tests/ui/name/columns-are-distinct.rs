use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    #[table(rename = "Other")]
    Name: String,
}

fn main() {}
