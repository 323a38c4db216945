use entable::prelude::*;

#[derive(EdmEnum)]
enum Status {
    New,
    #[table(rename = "New")]
    Fresh,
}

fn main() {}
