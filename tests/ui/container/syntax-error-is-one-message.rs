use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff" partition_key = "{department}", row_key = "{id:06}", index(ByAge, row_key "{age}_{id}"))]
struct Employee {
    department: String,
    id: u32,
    age: u8,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = , row_key = "{id:06}", list())]
struct Manager {
    #[table(rename =)]
    id: u32,
}

#[derive(Projection)]
#[table(of)]
struct Contact {
    id: u32,
}

fn main() {
    let _ = Employee::by_age().department("Sales").age(3).id(1);
    let _ = Manager::primary().id(7).keys();
}
