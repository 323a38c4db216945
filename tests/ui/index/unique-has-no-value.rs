use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, partition_key = "name_{name}", row_key = "name", unique = true)
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
