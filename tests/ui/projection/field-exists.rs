use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    age: i32,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    ages: i32,
}

fn main() {}
