use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(BySsn, partition_key = "ssn_{ssn:hmac}", row_key = "{department}_{id}", except(ssn)))]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
    age: i32,
}

#[derive(TableEntity)]
#[table(name = "Patients", partition_key = "{ssn:hmac}", row_key = "is", index(ByRoom, row_key = "room_{room}", except(ssn)))]
struct Patient {
    #[table(encrypt)]
    ssn: String,
    room: u32,
}

fn main() {}
