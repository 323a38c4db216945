use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    list(ByName, partition_key = "{name}", row_key = "{name}")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
