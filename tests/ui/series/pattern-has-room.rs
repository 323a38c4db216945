use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series("Day{:02}"))]
    days: [Option<i64>; 120],
    #[table(series("Hour"))]
    hours: [u32; 24],
}

fn main() {}
