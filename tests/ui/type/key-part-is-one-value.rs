use entable::prelude::*;

#[derive(KeyPart)]
struct Pair(u8, String);

#[derive(KeyPart)]
struct Nothing;

#[derive(KeyPart)]
struct Id<T>(T);

#[derive(KeyPart)]
union Either {
    one: u8,
    other: i8,
}

#[derive(KeyPart)]
#[table(rename_all = "lowercase")]
struct Number(u8);

#[derive(KeyPart)]
enum Shape {
    Round,
    Square(u8),
}

#[derive(KeyPart)]
struct Price(f64);

#[derive(KeyPart)]
struct Name(String);

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{pair}", row_key = "{nothing}_{name:06}")]
struct Employee {
    pair: Pair,
    nothing: Nothing,
    name: Name,
}

fn main() {}
