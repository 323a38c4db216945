use entable::prelude::*;

#[derive(Properties)]
struct Address {
    city: String,
    #[table(rename = "City")]
    town: String,
}

fn main() {}
