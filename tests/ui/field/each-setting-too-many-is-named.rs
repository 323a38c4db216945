use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(skip, extra, json)]
    more: Bag,
    #[table(encrypt, blind, skip)]
    ssn: String,
    #[table(blind, series)]
    sent: [u32; 24],
}

fn main() {}
