use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", expires = until, index(ByName, row_key = "name_{name}", except(until)), index(ByAge, row_key = "age_{age:03}", only(name)))]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: u8,
    until: Option<time::OffsetDateTime>,
}

fn main() {}
