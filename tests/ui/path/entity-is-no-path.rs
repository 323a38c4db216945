use entable::prelude::*;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
}

async fn remove(staff: Table<Employee>, don: Employee) -> Result<(), Error> {
    staff.delete_at(&don).await?;
    staff.get(("Sales", "000223")).await?;
    staff.transaction().delete_at(don)?;
    Ok(())
}

fn main() {}
