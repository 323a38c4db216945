use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "wide_{id:06}", wide)]
struct Employee {
    department: String,
    id: u32,
    age: i32,
    #[table(part = 2)]
    notes: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
struct Department {
    department: String,
    budget: i64,
}

#[derive(EntitySet)]
enum Row {
    Employee(Employee),
    Department(Department),
}

fn main() {}
