use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(series)]
    sent: [i32; 24],
    sent_07: i32,
    #[table(split(3))]
    text: String,
    #[table(rename = "Text_3")]
    other: i32,
}

fn main() {}
