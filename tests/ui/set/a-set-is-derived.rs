use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

pub fn set(client: &Client) -> SetTable<Employee> {
    client.set("Staff")
}

fn main() {}
