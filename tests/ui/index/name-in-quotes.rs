use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    index("ByEmail", row_key = "email_{email:lower}"))]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

fn main() {}
