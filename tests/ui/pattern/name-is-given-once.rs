use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

entable::access_patterns! {
    STAFF;
    "hire" write insert::<Employee>() at 2/h;
    "by id" point get(Employee::primary().department("Sales").id(1));
    "hire" write insert_or_replace::<Employee>() at 1/h;
}

fn main() {}
