use entable::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[table(name = "Welcome")]
struct Welcome<T> {
    of: T,
}

fn main() {}
