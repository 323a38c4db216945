use entable::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[table(name = "Welcome", expires = "a week")]
struct Welcome {
    id: u32,
}

fn main() {}
