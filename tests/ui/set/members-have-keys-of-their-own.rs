use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{name}")]
pub struct Note {
    pub department: String,
    pub name: String,
}

#[derive(EntitySet)]
pub enum Row {
    Employee(Employee),
    Note(Note),
}

fn main() {}
