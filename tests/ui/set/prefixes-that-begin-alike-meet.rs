use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{p}",
    row_key = "a_{text}",
    discriminator = row_key
)]
pub struct Text {
    pub p: String,
    pub text: String,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{p}",
    row_key = "a_b_{id:04}",
    discriminator = row_key
)]
pub struct Number {
    pub p: String,
    pub id: u32,
}

#[derive(EntitySet)]
pub enum Row {
    Text(Text),
    Number(Number),
}

fn main() {}
