use entable::prelude::*;

#[derive(Properties)]
struct Address {
    #[table(store)]
    city: String,
    #[table(series)]
    sent: [u32; 24],
}

fn main() {}
