use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", validate = check)]
struct Employee {
    department: String,
    id: u32,
}

fn check(_: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
