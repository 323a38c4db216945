use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Years", partition_key = "{employee:06}", row_key = "{year:04}")]
struct Year {
    employee: u32,
    year: u16,
    #[table(series)]
    days: [i32; 365],
}

#[derive(TableEntity)]
#[table(name = "Years", partition_key = "{employee:06}", row_key = "{year:04}")]
struct Half {
    employee: u32,
    year: u16,
    #[table(series)]
    sent: [i32; 183],
    #[table(series)]
    read: [i32; 69],
}

fn main() {}
