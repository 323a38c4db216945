use entable::prelude::*;

type Maybe = Option<i32>;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(default = five)]
    level: Option<i32>,
    #[table(default = five)]
    rank: Maybe,
    #[table(flatten)]
    home: Home,
}

#[derive(Properties)]
struct Home {
    #[table(default = five)]
    floor: Option<i32>,
}

fn five() -> Option<i32> {
    Some(5)
}

fn main() {}
