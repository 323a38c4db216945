use entable::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[table(name = "Welcome", version = 0)]
struct Welcome {
    id: u32,
}

fn main() {}
