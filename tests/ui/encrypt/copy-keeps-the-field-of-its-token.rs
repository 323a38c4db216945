use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(BySsn, row_key = "ssn_{ssn:hmac}", except(ssn)))]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
    age: i32,
}

fn main() {}
