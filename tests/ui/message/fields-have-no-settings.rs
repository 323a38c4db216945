use entable::prelude::*;

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[table(name = "Welcome", unauthenticated)]
struct Welcome {
    #[table(rename = "Id")]
    id: u32,
}

#[derive(serde::Serialize, serde::Deserialize, Message)]
enum Task {
    #[table(rename = "Go")]
    Start {
        #[table(encrypt)]
        id: u32,
    },
}

fn main() {}
