use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series)]
    sent: [u32; 24],
    #[table(rename = "Sent07")]
    seventh: u32,
    #[table(split(3))]
    text: String,
    text_2: String,
}

fn main() {}
