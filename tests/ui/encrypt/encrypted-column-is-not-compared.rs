use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt)]
    salary: f64,
}

fn main() {
    let _ = Employee::SALARY.ge(1.0);
    let _ = Employee::SALARY.eq(1.0);
}
