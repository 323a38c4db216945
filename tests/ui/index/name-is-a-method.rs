use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "p_{id:06}",
    index(Self, row_key = "a_{id}"),
    index(Super, row_key = "b_{id}"),
    list(Crate, row_key = "c_{id}"),
    index(_1, row_key = "d_{id}")
)]
struct Employee {
    department: String,
    id: u32,
}

fn main() {}
