use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee",
    version = 2,
    upgrade_from(Employee),
)]
pub struct Second {
    pub department: String,
    pub id: u32,
}

fn main() {}
