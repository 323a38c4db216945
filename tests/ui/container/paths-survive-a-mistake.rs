use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(renam = "Years")]
    age: Option<i32>,
}

fn main() {
    let _ = Employee::primary().department("Sales").id_range(1..5);
    let _ = Employee::patch().age(5).remove_age();
    let _ = Employee::AGE.ge(5);
}
