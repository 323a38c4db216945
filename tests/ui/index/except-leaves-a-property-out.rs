use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", index(ByName, row_key = "name_{name}", except(name)), index(ByAge, row_key = "age_{age:03}", only(age, cache)))]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: u8,
    #[table(skip)]
    cache: u32,
}

fn main() {}
