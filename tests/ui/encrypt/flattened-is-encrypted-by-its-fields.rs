use entable::prelude::*;

#[derive(Properties)]
struct Address {
    city: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten, encrypt)]
    address: Address,
}

fn main() {}
