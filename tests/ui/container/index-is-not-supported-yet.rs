use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(ByName, row_key = "{department}"))]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
