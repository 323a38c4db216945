use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    #[table(rename = "FirstName")]
    given_name: String,
}

fn main() {}
