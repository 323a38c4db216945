use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id}", allow(same_keys))]
pub struct Employee {
    pub department: String,
    pub id: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "{code}")]
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
