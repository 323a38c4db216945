use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    list(ByName, partition_key = "{nam}", row_key = "ids")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
