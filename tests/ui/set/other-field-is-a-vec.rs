use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

#[derive(EntitySet)]
struct Page {
    #[table(one)]
    employee: Employee,
    #[table(other)]
    others: DynamicEntity,
}

#[derive(EntitySet)]
struct Names {
    #[table(one)]
    employee: Employee,
    #[table(other)]
    others: Vec<String>,
}

fn main() {}
