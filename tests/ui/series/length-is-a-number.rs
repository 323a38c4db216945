use entable::prelude::*;

const HOURS: usize = 24;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series)]
    sent: [u32; HOURS],
}

fn main() {}
