use entable::prelude::*;

#[derive(Projection)]
struct Contact {
    age: i64,
}

fn main() {}
