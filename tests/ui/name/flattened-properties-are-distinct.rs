use entable::prelude::*;

#[derive(Properties)]
struct Address {
    city: String,
    zip: Option<String>,
}

#[derive(Properties)]
struct Office {
    #[table(flatten(prefix = "At"))]
    address: Option<Address>,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    office_at_zip: i32,
    #[table(flatten)]
    office: Office,
}

fn main() {}
