use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}"),
    list(ByName, row_key = "names_{name}")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
    age: i32,
}

fn main() {}
