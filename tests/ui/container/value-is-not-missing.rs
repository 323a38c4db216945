use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = ,
    validate = ,
    seal = ,
    index(ByAge, row_key = ),
)]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt(pad = ))]
    ssn: String,
    #[table(split = )]
    notes: String,
    #[table(default = )]
    age: u8,
    #[table(rename = 1 +)]
    level: u8,
}

#[derive(Projection)]
#[table(of = )]
struct Contact {
    id: u32,
}

fn main() {}
