use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
}

#[derive(Projection)]
#[table(of = Employee)]
pub struct Id {
    pub id: u32,
}

#[derive(EntitySet)]
pub enum Row {
    Id(Id),
}

pub fn write(egt: &mut Transaction, row: &Row) -> Result<(), Error> {
    egt.insert(row).map(drop)
}

fn main() {}
