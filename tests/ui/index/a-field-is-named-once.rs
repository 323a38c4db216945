use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", index(ByName, row_key = "name_{name}", only(age, age)))]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: u8,
}

fn main() {}
