use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{email:hmac}", wide)]
struct Employee {
    department: String,
    #[table(encrypt)]
    email: String,
    #[table(part = 2)]
    notes: Option<String>,
}

fn main() {}
