use entable::prelude::*;

#[derive(EdmEnum)]
enum Status {
    New,
    Closed(u32),
}

fn main() {}
