use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", list(ByEmail, row_key = "email_{email:lower}"))]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt)]
    email: String,
}

fn main() {}
