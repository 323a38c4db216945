//! Defines the entities of these tests.

use entable::prelude::*;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    validate = Employee::validate
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub email: String,
    pub salary: Option<f64>,
    pub note: Option<String>,
}

impl Employee {
    fn validate(&self) -> Result<(), BoxError> {
        if self.age < 0 { Err("an age is not negative".into()) } else { Ok(()) }
    }
}

pub(crate) fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        last_name: "Hall".into(),
        age: 30 + i32::try_from(id % 10).unwrap(),
        email: format!("don{id}@contoso.com"),
        salary: None,
        note: None,
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}_{year:04}")]
pub struct Review {
    pub department: String,
    pub id: u32,
    pub year: u16,
    pub rating: Option<i32>,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
pub(crate) struct Contact {
    pub id: u32,
    pub department: String,
    pub email: String,
    pub note: Option<String>,
}

pub(crate) async fn staff() -> (Client, Table<Employee>) {
    let client = Client::memory();
    let staff: Table<Employee> = client.table();
    staff.create_if_not_exists().await.unwrap();
    (client, staff)
}

pub(crate) async fn table<E: TableEntity>() -> Table<E> {
    let table = Client::memory().table();
    table.create_if_not_exists().await.unwrap();
    table
}

pub(crate) fn point(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}
