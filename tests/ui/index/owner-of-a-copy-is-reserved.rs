use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(BySrc, partition_key = "{src}", row_key = "{department}_{id:06}")
)]
struct Person {
    department: String,
    id: u32,
    src: String,
}

fn main() {}
