use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "id_{id:06}",
    wide,
    index(ByAge, row_key = "age_{age:03}_{id:06}"),
    index(ByAgeToo, row_key = "too_{age:03}_{id:06}", only(notes)),
    list(OfAge, row_key = "list_{age:03}")
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    #[table(part = 2)]
    notes: String,
}

fn main() {}
