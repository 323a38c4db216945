use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", PartitionKey = "{department}", RowKey = "empid_{id:06}", index(ByAge, rowKey = "age_{age:03}_{id:06}"))]
struct Employee {
    department: String,
    id: u32,
    age: u8,
}

// What is unknown may stand for what seems missing.
#[derive(TableEntity)]
#[table(table = "Staff", pk = "{department}", rk = "empid_{id:06}", index(ByAge, key = "age_{age:03}_{id:06}"))]
struct Manager {
    department: String,
    id: u32,
    age: u8,
}

#[derive(Projection)]
#[table(entity = Employee)]
struct Contact {
    id: u32,
}

fn main() {}
