use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    discriminator = row_key,
    wide
)]
struct Employee {
    department: String,
    id: u32,
    age: i32,
    #[table(part = 2)]
    notes: String,
}

fn main() {}
