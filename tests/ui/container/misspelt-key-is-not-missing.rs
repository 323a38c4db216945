use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partiton_key = "{department}", row_key = department, index(ByAge, rowkey = "{age}_{id}"))]
struct Employee {
    department: String,
    id: u32,
    age: u8,
}

#[derive(Projection)]
#[table(off = Employee)]
struct Contact {
    id: u32,
}

fn main() {
    let _ = Employee::by_age().department("Sales").age(3).id(1).keys();
}
