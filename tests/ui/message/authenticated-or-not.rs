use entable::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[table(name = "Welcome", authenticated, unauthenticated)]
struct Welcome {
    id: u32,
}

fn main() {}
