use entable::prelude::*;

#[derive(Properties)]
struct Address {
    #[table(series)]
    floors: [u8; 4],
}

fn main() {}
