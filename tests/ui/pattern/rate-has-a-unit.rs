use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

entable::access_patterns! {
    STAFF;
    "by id" point get(Employee::primary().department("Sales").id(1)) at 500;
}

fn main() {}
