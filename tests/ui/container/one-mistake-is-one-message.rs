use entable::prelude::*;

#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{departmnt}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    age: i32,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Contact {
    age: i32,
}

fn use_it(employee: &Employee) -> Result<Employee, Error> {
    let _ = Employee::AGE.ge(30);
    let _ = Employee::primary().keys();
    let _ = Contact::from_row(&employee.to_row()?)?.age;
    Employee::from_row(&employee.to_row()?)
}

fn main() {
    let _ = use_it;
}
