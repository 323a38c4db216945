use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}_{id:06}", in_blob)
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
