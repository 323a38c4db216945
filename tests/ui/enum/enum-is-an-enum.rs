use entable::prelude::*;

#[derive(EdmEnum)]
struct Status {
    text: String,
}

fn main() {}
