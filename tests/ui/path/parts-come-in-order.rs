use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "{id:06}",
    index(ByName, row_key = "name_{name}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

async fn write(staff: Table<Employee>) -> Result<(), Error> {
    staff.delete_at(Employee::primary().id(7).department("Sales")).await?;
    staff.get(Employee::by_name().department("Sales").id(7).name("Jones")).await?;
    Ok(())
}

fn main() {}
