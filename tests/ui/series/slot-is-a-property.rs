use entable::prelude::*;

#[derive(Default)]
struct Opaque;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series)]
    sent: [Opaque; 24],
}

fn main() {}
