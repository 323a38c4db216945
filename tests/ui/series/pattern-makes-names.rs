use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series("Day-{:02}"))]
    days: [u32; 24],
    #[table(rename = "Hour_01")]
    hour_01: u32,
    #[table(series("Hour_{:02}"))]
    hours: [u32; 24],
}

fn main() {}
