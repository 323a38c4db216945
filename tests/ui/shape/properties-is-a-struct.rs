use entable::prelude::*;

#[derive(Properties)]
union Address {
    city: u8,
}

fn main() {}
