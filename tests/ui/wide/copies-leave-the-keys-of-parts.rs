use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    wide,
    index(ByAge, row_key = "{id:06}_{age:02}", only(notes))
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    #[table(part = 2)]
    notes: String,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    wide,
    index(ByAge, row_key = "{id:06}_02", only(notes))
)]
struct Second {
    department: String,
    id: u32,
    age: u8,
    #[table(part = 2)]
    notes: String,
}

fn main() {}
