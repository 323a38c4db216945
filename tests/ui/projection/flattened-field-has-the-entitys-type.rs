use entable::prelude::*;

#[derive(Properties)]
struct Address {
    city: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten)]
    home: Address,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    home: String,
}

#[derive(Projection)]
#[table(of = Employee)]
struct City {
    city: String,
}

fn main() {}
