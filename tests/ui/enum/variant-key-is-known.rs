use entable::prelude::*;

#[derive(EdmEnum)]
enum Status {
    #[table(name = "new")]
    New,
}

fn main() {}
