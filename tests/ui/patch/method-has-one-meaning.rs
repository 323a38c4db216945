use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    note: Option<String>,
    remove_note: bool,
}

fn main() {
    let _ = Employee::patch().note("x");
}
