//! Defines the entities of the design guide's examples.

use entable::{Ticks, prelude::*};
use time::OffsetDateTime;

/// An employee with both copies and the list of the guide's patterns.
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
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub email: String,
}

/// An employee without copies: every verb is one request.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Worker {
    pub department: String,
    pub id: u32,
    pub last_name: String,
    pub age: Option<i32>,
    pub email: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
pub struct Department {
    pub department: String,
    pub department_name: String,
    pub employee_count: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}_{year:04}")]
pub struct Review {
    pub department: String,
    pub id: u32,
    pub year: u16,
    pub manager_rating: i32,
    pub peer_rating: i32,
    pub comments: String,
}

/// The employee of the guide's sample table.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sample",
    partition_key = "{department}",
    row_key = "{id:05}",
    entity_type = "Employee"
)]
pub struct SampleEmployee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub email: String,
}

/// The department of the guide's sample table.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sample",
    partition_key = "{department}",
    row_key = "Department",
    entity_type = "Department"
)]
pub struct SampleDepartment {
    pub department: String,
    pub department_name: String,
    pub employee_count: i32,
}

pub fn employee(id: u32, last_name: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        last_name: last_name.into(),
        age: 34,
        email: format!("{}{id}@contoso.com", last_name.to_lowercase()),
    }
}

pub fn worker(id: u32) -> Worker {
    Worker {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        age: Some(34),
        email: Some("jones@contoso.com".into()),
    }
}

pub fn department(name: &str) -> Department {
    Department { department: name.into(), department_name: name.into(), employee_count: 0 }
}

pub fn review(id: u32, year: u16) -> Review {
    Review {
        department: "Sales".into(),
        id,
        year,
        manager_rating: 4,
        peer_rating: 5,
        comments: format!("{year} was fine"),
    }
}

pub fn sample_employees() -> [SampleEmployee; 3] {
    let employee = |department: &str, id, first_name: &str, last_name: &str, age, email: &str| {
        SampleEmployee {
            department: department.into(),
            id,
            first_name: first_name.into(),
            last_name: last_name.into(),
            age,
            email: email.into(),
        }
    };
    [
        employee("Sales", 10, "Ken", "Kwok", 23, "kenk@contoso.com"),
        employee("Marketing", 2, "Jun", "Cao", 47, "junc@contoso.com"),
        employee("Marketing", 1, "Don", "Hall", 34, "donh@contoso.com"),
    ]
}

pub fn sample_department() -> SampleDepartment {
    SampleDepartment {
        department: "Marketing".into(),
        department_name: "Marketing".into(),
        employee_count: 153,
    }
}

/// The sample table, filled in another order than that of its keys.
pub async fn sample(client: &Client) -> Result<(), Error> {
    let employees = client.table::<SampleEmployee>();
    employees.create_if_not_exists().await?;
    for employee in sample_employees() {
        employees.insert(&employee).await?;
    }
    client.table::<SampleDepartment>().insert(&sample_department()).await?;
    Ok(())
}

/// A time, as the service writes it.
pub fn at(text: &str) -> OffsetDateTime {
    text.parse::<Ticks>().unwrap().into()
}
