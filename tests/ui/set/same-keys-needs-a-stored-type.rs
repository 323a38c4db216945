use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{name}",
    discriminator = row_key,
    allow(same_keys)
)]
pub struct Note {
    pub department: String,
    pub name: String,
}

#[derive(EntitySet)]
#[table(allow(same_key))]
pub enum Row {
    Note(Note),
}

fn main() {}
