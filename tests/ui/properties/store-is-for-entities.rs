use entable::prelude::*;

#[derive(Properties)]
struct Address {
    #[table(store)]
    city: String,
}

fn main() {}
