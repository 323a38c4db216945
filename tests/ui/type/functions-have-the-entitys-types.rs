use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "p_{id:06}",
    validate = check,
    index(ById, row_key = "i_{id}", when = is_old)
)]
struct Employee {
    department: String,
    id: u32,
    #[table(default = no_age)]
    age: u8,
}

fn check(_: &Employee) -> Result<(), u8> {
    Ok(())
}

fn is_old(age: u8) -> bool {
    age > 60
}

fn no_age() -> u16 {
    0
}

fn main() {}
