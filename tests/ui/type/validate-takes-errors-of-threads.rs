use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", validate = check)]
struct Employee {
    department: String,
    id: u32,
}

fn check(employee: &Employee) -> Result<(), Box<dyn std::error::Error>> {
    if employee.id == 0 { Err("an id is not 0".into()) } else { Ok(()) }
}

fn main() {}
