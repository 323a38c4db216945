use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    manager: Option<KeyRef<Employee>>,
}

#[derive(Properties)]
struct Team {
    lead: KeyRef<Employee>,
}

fn main() {}
