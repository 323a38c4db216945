use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
