use entable::prelude::*;
use entable::Blob;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}", wide)]
struct Employee {
    department: String,
    id: u32,
    #[table(part = 2)]
    notes: String,
    #[table(blob)]
    photo: Option<Blob>,
}

fn main() {}
