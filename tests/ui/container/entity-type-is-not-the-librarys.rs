use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", entity_type = "entable.list")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
