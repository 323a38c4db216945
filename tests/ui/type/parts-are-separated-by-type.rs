use entable::prelude::*;

#[derive(Debug, Clone, Copy, EdmEnum)]
enum Kind {
    Full,
    Half,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{kind}{id:06}")]
struct Employee {
    department: String,
    kind: Kind,
    id: u32,
}

fn main() {}
