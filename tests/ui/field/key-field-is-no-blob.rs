use entable::prelude::*;
use entable::Blob;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{photo}")]
struct Employee {
    department: String,
    #[table(blob)]
    photo: Blob,
}

fn main() {}
