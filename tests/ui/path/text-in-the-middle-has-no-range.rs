use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{id}", row_key = "{department}_{age}")]
struct Employee {
    department: String,
    id: u32,
    age: i32,
}

fn main() {
    let _ = Employee::primary().id(1_u32).department_range("A".."B");
}
