use entable::prelude::*;

const HOURS: usize = 24;

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(series)]
    sent: [i32; HOURS],
    #[table(series)]
    read: Vec<i32>,
}

fn main() {}
