use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    list(ByName, row_key = "{name}", in_blob),
    list(ByDay, row_key = "day_{id:06}", in_blob)
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn main() {}
