use entable::prelude::*;

#[derive(TableEntity)]
struct Pair(u8, String);

#[derive(TableEntity)]
#[table(partition_key = "{id}", row_key = "{name}", index(ByName, row_key = "{name}", only(name)))]
enum Either {
    One { id: u8 },
}

#[derive(TableEntity)]
union Both {
    one: u8,
    two: i8,
}

#[derive(EntitySet)]
union Members {
    one: u8,
    two: i8,
}

#[derive(EntitySet)]
struct Tuple(Vec<DynamicEntity>);

#[derive(EdmEnum)]
struct Colour {
    name: String,
}

#[derive(Properties)]
struct Size(u8);

#[derive(Projection)]
struct Some(u8);

fn main() {}
