use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "e#{email:lower}", row_key = "{department}_{id:06}"),
    index(ByTeam, partition_key = "t_{taem}", row_key = "{department}_{id:06}"),
    index(ByNick, partition_key = nick, row_key = "n_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    team: String,
    nick: String,
}

async fn use_them(table: &Table<Employee>) -> Result<(), Error> {
    table.query(Employee::by_email().email("don").department("Sales")).collect().await?;
    table.query(Employee::by_team().team("Blue").department("Sales").id(7)).collect().await?;
    table.query(Employee::by_nick().nick("Don").department("Sales")).collect().await?;
    Ok(())
}

fn main() {
    let _ = use_them;
}
