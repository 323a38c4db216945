//! Defines the staff of the design guide: employees, departments and reviews in one table.

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}"),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub last_name: String,
    pub age: i32,
    pub email: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
    pub employee_count: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "review_{id:06}_{year:04}",
    discriminator = row_key
)]
pub struct Review {
    pub department: String,
    pub id: u32,
    pub year: u32,
    pub rating: i32,
}

/// Every row has to be of a known type.
#[derive(Debug, Clone, PartialEq, EntitySet)]
pub enum StaffRow {
    Employee(Employee),
    Department(Department),
    Review(Review),
}

/// Rows of other types are delivered whole.
#[derive(Debug, Clone, PartialEq, EntitySet)]
pub enum AnyRow {
    Employee(Employee),
    Department(Department),
    Review(Review),
    #[table(other)]
    Other(DynamicEntity),
}

pub fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        age: 34,
        email: format!("jones{id}@contoso.com"),
    }
}

pub fn department() -> Department {
    Department { name: "Sales".into(), employee_count: 1 }
}

pub fn review(id: u32, year: u32) -> Review {
    Review { department: "Sales".into(), id, year, rating: 3 }
}

/// A client whose requests are counted, with a table `Staff`.
pub async fn client() -> (Recorder, Client) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    recorder.clear();
    (recorder, client)
}

/// An employee, the department and two reviews.
pub async fn staffed() -> (Recorder, Client) {
    let (recorder, client) = client().await;
    let mut egt = client.transaction();
    egt.insert(&employee(223)).unwrap().insert(&department()).unwrap();
    egt.insert(&review(223, 2012)).unwrap().insert(&review(223, 2013)).unwrap();
    egt.commit().await.unwrap();
    recorder.clear();
    (recorder, client)
}
