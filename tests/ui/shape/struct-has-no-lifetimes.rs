use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee<'a> {
    department: &'a str,
    id: u32,
}

fn main() {}
