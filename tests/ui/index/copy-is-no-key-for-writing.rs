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

async fn remove(staff: Table<Person>) {
    let path = Person::by_name().department("Sales").name("Jones");
    let _ = staff.delete_at(path).await;
}

fn main() {}
