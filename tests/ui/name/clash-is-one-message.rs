use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "p_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    #[allow(non_snake_case)]
    firstName: String,
}

fn main() {}
