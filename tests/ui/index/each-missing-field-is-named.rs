use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}", only(id))
)]
struct Person {
    department: String,
    id: u32,
    name: String,
    age: i32,
    town: String,
}

#[derive(Projection)]
#[table(of = Person)]
struct Rest {
    name: String,
    age: i32,
    town: String,
}

async fn read(staff: Table<Person>) {
    let path = Person::by_name().department("Sales").name("Jones");
    let _ = staff.get_as::<Rest>(path).await;
}

fn main() {}
