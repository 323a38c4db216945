use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", list(ByName, row_key = "name_{name}", when = is_old, only(age)),
    list(ByAge, row_key = "age_{age:03}", except(name)))]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: u8,
}

fn is_old(employee: &Employee) -> bool {
    employee.age > 60
}

fn main() {}
