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
}

#[derive(Projection)]
#[table(of = Person)]
struct Age {
    name: String,
    age: i32,
}

async fn read(staff: Table<Person>) {
    let path = Person::by_name().department("Sales");
    let _ = staff.query(path).select::<Age>().collect().await;
}

fn main() {}
