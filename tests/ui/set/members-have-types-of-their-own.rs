use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "intern_{id:06}", entity_type = "Employee")]
pub struct Intern {
    pub department: String,
    pub id: u32,
}

#[derive(EntitySet)]
pub enum Row {
    Employee(Employee),
    Intern(Intern),
}

fn main() {}
