use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(5)]
    age: u8,
    #[table(encrypt(64))]
    ssn: String,
    #[table(rename = "Level",, json)]
    level: u8,
    #[table(skip json)]
    more: u8,
}

fn main() {}
