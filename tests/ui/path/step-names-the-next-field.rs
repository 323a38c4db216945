use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}_{part:02}")]
struct Employee {
    department: String,
    id: u32,
    part: u8,
}

// The type that a message shows names the step that is missing, as `__give_part`.
async fn read(table: &Table<Employee>) -> Result<(), Error> {
    table.get(Employee::primary().department("Sales").id(7)).await?;
    table.query(Employee::primary()).collect().await?;
    Ok(())
}

fn main() {
    let _ = read;
}
