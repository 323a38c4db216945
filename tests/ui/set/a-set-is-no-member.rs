use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(EntitySet)]
pub enum Inner {
    Employee(Employee),
}

#[derive(EntitySet)]
pub enum Outer {
    Inner(Inner),
}

fn main() {}
