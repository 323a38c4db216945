use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(series("Sent"))]
    sent: [i32; 24],
    #[table(series("Read{:01}"))]
    read: [i32; 24],
    #[table(series = "Lost{:02}")]
    lost: [i32; 24],
}

fn main() {}
