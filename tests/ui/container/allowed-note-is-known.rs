use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", allow(slow, unread_index))]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
