use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "worker_{id:06}",
    discriminator = row_key,
    version = 2,
)]
pub struct Worker {
    pub department: String,
    pub id: u32,
}

fn main() {}
