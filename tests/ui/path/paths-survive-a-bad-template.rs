use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:6}",
    index(ByAge, row_key = "a_{age:03}_{id:06}"),
    index(ByEmail, row_key = "e#{email:lower}"),
    index(ByNick, row_key = "n_{nickname}_{id}"),
    list(ByTeam, row_key = "t_{taem}")
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    email: String,
    team: String,
}

async fn use_them(table: &Table<Employee>) -> Result<(), Error> {
    table.get(Employee::primary().department("Sales").id(7)).await?;
    table.query(Employee::primary().department("Sales").id_range(1..5)).collect().await?;
    table.get(Employee::by_age().department("Sales").age(40).id(7)).await?;
    table.query(Employee::by_email().department("Sales").email_prefix("don")).collect().await?;
    table.query(Employee::by_nick().department("Sales").id(7)).collect().await?;
    table.keys(Employee::by_team().department("Sales").team("Blue")).await?;
    Ok(())
}

fn main() {
    let _ = use_them;
}
