use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series)]
    sent: [u32; 24],
    #[table(split(4))]
    text: String,
}

fn main() {
    let _ = Employee::SENT.ge(5);
    let _ = Employee::TEXT.eq("a");
    let _ = Employee::SENT.at(3).ge(5);
}
