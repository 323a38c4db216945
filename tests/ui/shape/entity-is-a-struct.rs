use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "a", row_key = "b")]
enum Employee {
    Don,
}

fn main() {}
