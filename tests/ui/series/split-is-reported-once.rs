use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(split(4))]
    age: Option<i32>,
    #[table(split(4))]
    parts: Vec<i32>,
}

fn main() {}
