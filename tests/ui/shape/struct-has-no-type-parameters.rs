use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee<T> {
    department: String,
    id: u32,
    more: T,
}

fn main() {}
