use entable::prelude::*;

struct Employee {
    id: u32,
    name: String,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    name: String,
    age: u8,
}

fn main() {}
