use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(EntitySet)]
pub enum Row {
    Employee(Employee),
    #[table(other)]
    Other(DynamicEntity),
    #[table(other)]
    Rest(DynamicEntity),
}

fn main() {}
