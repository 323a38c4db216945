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

impl From<Employee> for Second {
    fn from(Employee { department, id }: Employee) -> Self {
        Self { department, id }
    }
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    entity_type = "Employee",
    version = 2,
    upgrade_from(Second),
)]
pub struct Third {
    pub department: String,
    pub id: u32,
}

impl From<Second> for Third {
    fn from(Second { department, id }: Second) -> Self {
        Self { department, id }
    }
}

fn main() {}
