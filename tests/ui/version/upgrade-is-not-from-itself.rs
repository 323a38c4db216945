use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", version = 2, upgrade_from(Employee))]
struct Employee {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", upgrade_from(Self))]
struct Manager {
    department: String,
    id: u32,
}

fn main() {}
