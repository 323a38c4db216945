use entable::prelude::*;

mod old {
    use entable::prelude::*;

    #[derive(TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "{id:06}",
        entity_type = "Employee"
    )]
    pub struct EmployeeV1 {
        pub department: String,
        pub id: u32,
        pub notes: String,
    }
}

use old::EmployeeV1;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    wide,
    version = 2,
    upgrade_from(EmployeeV1)
)]
struct Employee {
    department: String,
    id: u32,
    age: i32,
    #[table(part = 2)]
    notes: String,
}

impl From<EmployeeV1> for Employee {
    fn from(old: EmployeeV1) -> Self {
        Self { department: old.department, id: old.id, age: 0, notes: old.notes }
    }
}

fn main() {}
