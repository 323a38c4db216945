use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}_{team}", index(ByTeam, row_key = "t_{team}_{id}"))]
struct Employee {
    department: String,
    id: u32,
    team: Option<String>,
}

fn main() {
    let _ = Employee::primary().department("Sales").id(1).team("x");
}
