use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Employee {
    department: String,
    id: u32,
    entable_parts: String,
    #[table(part = 2)]
    notes: String,
}

fn main() {}
