use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", index(ByCode, row_key = "code_{code}"))]
struct Employee {
    department: String,
    id: u32,
    sent: [u32; 24],
    read: Option<[u32; 24]>,
    code: [u8; 4],
}

#[derive(Properties)]
struct Address {
    floors: [u8; 4],
}

fn main() {}
