use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    allow(same_keys),
    index(ByEmail, row_key = "email_{email}")
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub email: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "{code}", allow(same_keys))]
pub struct Department {
    pub name: String,
    pub code: String,
}

#[derive(EntitySet)]
#[table(allow(same_keys))]
pub enum Row {
    Employee(Employee),
    Department(Department),
}

fn main() {}
