use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    list(ByName, row_key = "name_{name}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Name {
    name: String,
}

async fn get(table: &Table<Employee>) {
    let _ = table.get(Employee::primary().department("Sales")).await;
}

async fn get_as(table: &Table<Employee>) {
    let _ = table.get_as::<Name>(Employee::primary().department("Sales")).await;
}

async fn get_many(table: &Table<Employee>) {
    let _ = table.get_many([Employee::primary().department("Sales")]).await;
}

fn main() {}
