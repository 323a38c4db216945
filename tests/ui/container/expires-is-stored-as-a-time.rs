use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Sessions", partition_key = "{user}", row_key = "{id:06}", expires = until)]
struct Session {
    user: String,
    id: u32,
    until: Option<i64>,
}

fn main() {}
