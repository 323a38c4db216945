use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Employee {
    department: String,
    id: u32,
    #[table(series)]
    first: [u8; 200],
    #[table(series)]
    second: [u8; 51],
    #[table(part = 2)]
    notes: String,
}

fn main() {}
