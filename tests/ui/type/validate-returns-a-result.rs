use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}", validate = Employee::is_fine)]
struct Employee {
    department: String,
    id: u32,
}

impl Employee {
    fn is_fine(&self) -> bool {
        self.id > 0
    }
}

fn main() {}
