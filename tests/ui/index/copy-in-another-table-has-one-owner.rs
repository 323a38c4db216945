use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, table = "People", row_key = "name_{name}")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
