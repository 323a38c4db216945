use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}")
)]
struct Person {
    department: String,
    id: u32,
    name: String,
}

async fn rebuild(staff: Table<Person>) {
    let _ = staff.rebuild("ByName").await;
}

fn main() {}
