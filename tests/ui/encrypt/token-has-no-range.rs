use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(ByLevel, row_key = "l_{level:hmac}"))]
struct Employee {
    department: String,
    id: u32,
    #[table(encrypt)]
    level: i32,
}

fn main() {
    let _ = Employee::by_level().department("Sales").level_range(1..2);
}
