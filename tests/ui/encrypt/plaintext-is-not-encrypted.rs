use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(BySsn, row_key = "ssn_{ssn:hmac}"))]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt, plaintext)]
    ssn: String,
}

fn main() {}
