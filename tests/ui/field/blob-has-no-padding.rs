use entable::prelude::*;
use entable::Blob;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(blob, encrypt(pad = 64))]
    photo: Option<Blob>,
    #[table(blob, encrypt(hide_none))]
    contract: Option<Blob>,
}

fn main() {}
