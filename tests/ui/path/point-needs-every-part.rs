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

async fn read(table: &Table<Employee>) -> Result<(), Error> {
    // A part of the key is forgotten.
    table.get(Employee::primary().department("Sales")).await?;
    table.get_as::<Name>(Employee::primary().department("Sales")).await?;
    table.get_many([Employee::primary().department("Sales")]).await?;
    // The parts are in the wrong order.
    table.get(Employee::primary().id(7).department("Sales")).await?;
    // This is no path at all.
    table.get(("Sales", 7)).await?;
    Ok(())
}

fn main() {
    let _ = read;
}
