use entable::prelude::*;

#[derive(Message)]
#[table(name = "Welcome")]
struct Welcome {
    id: u32,
}

fn main() {}
