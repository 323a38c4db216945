use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

entable::access_patterns! {
    STAFF;
    "hire two" write transaction().insert::<Employee>().upsert::<Employee>() at 2/h;
}

fn main() {}
