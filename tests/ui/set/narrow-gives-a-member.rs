use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
}

#[derive(EntitySet)]
pub enum Row {
    Employee(Employee),
}

pub fn department(row: entable::Stored<Row>) -> Result<entable::Stored<Department>, Error> {
    row.narrow()
}

fn main() {}
