use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(split(1))]
    text: String,
    #[table(split(16))]
    notes: String,
    #[table(split(0))]
    remarks: String,
}

fn main() {}
