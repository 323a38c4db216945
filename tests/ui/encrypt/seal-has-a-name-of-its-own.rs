use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", seal)]
struct Employee {
    department: String,
    id: u32,
    entity_seal: String,
}

fn main() {}
