use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt, blind)]
    level: i32,
}

fn main() {
    let _ = Employee::LEVEL.eq("high");
}
