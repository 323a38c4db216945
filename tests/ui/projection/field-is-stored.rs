use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(skip)]
    cache: u32,
    #[table(extra)]
    more: Bag,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    cache: u32,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Rest {
    more: Bag,
}

fn main() {}
