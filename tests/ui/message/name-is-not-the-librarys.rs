use entable::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[table(name = "entable.move")]
struct Welcome {
    id: u32,
}

fn main() {}
