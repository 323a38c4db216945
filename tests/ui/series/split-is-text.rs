use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(split(1))]
    text: String,
    #[table(split(2), blind, encrypt)]
    other: String,
}

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Number {
    employee: u32,
    day: u32,
    #[table(split(2))]
    number: u32,
}

fn main() {}
