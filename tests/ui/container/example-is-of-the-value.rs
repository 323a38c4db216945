use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = Staff,
    partition_key("{department}"),
    row_key = "empid_{id:06}",
    validate = "Employee::check",
    crate = "en table",
    index(ByAge, row_key = "age_{age:03}_{id:06}", only = age),
    index = ByLevel,
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    #[table(encrypt = 64)]
    ssn: String,
    #[table(encrypt, blind = 8)]
    phone: String,
    #[table(flatten = "Home")]
    home: Address,
    #[table(default = 1)]
    level: u8,
}

#[derive(Properties)]
#[table(rename_all = camelCase)]
struct Address {
    city: String,
}

fn main() {}
