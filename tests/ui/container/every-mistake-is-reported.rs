use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "s", partition_key = "{departmnt}", row_key = "{id:6}")]
struct Employee {
    department: String,
    id: u32,
    #[table(jsn)]
    tags: Vec<String>,
}

fn main() {}
