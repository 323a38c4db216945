use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(EntitySet)]
pub struct Page {
    #[table(mny)]
    pub employees: Vec<Employee>,
    #[table(rows)]
    pub others: Vec<DynamicEntity>,
}

#[derive(EntitySet)]
pub enum Row {
    Employee { employee: Employee },
    Nothing,
}

fn main() {}
