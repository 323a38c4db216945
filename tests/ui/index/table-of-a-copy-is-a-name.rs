use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, table = "no table", row_key = "name_{department}_{id:06}")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
