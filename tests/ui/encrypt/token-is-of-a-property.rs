use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", index(ByTags, row_key = "t_{tags:hmac}"))]
struct Employee {
    department: String,
    id: u32,
    #[table(json)]
    tags: String,
}

fn main() {}
