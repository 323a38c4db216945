//! M: denormalisation: a department holds a copy of its manager's details.

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

/// The fields that the department copies.
#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Contact {
    pub first_name: String,
    pub email: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
    #[table(flatten(prefix = ""))]
    pub contact: Contact,
    pub age: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
    pub manager_id: u32,
    #[table(flatten)]
    pub manager: Contact,
}

#[derive(Debug, EntitySet)]
struct Page {
    #[table(one)]
    department: Stored<Department>,
    #[table(many)]
    employees: Vec<Stored<Employee>>,
}

async fn staffed() -> (Recorder, Client) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let contact = Contact { first_name: "Don".into(), email: "donh@contoso.com".into() };
    let mut egt = client.transaction();
    let don = Employee { department: "Sales".into(), id: 1, contact: contact.clone(), age: 34 };
    let sales = Department { name: "Sales".into(), manager_id: 1, manager: contact };
    egt.insert(&don).unwrap().insert(&sales).unwrap();
    egt.commit().await.unwrap();
    recorder.clear();
    (recorder, client)
}

#[tokio::test]
async fn m01_the_department_holds_the_managers_details() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let row = client.dynamic("Staff").get("Sales", "department").await?.unwrap();
    assert_eq!(row.str("ManagerEmail")?, "donh@contoso.com");
    assert_eq!(row.str("ManagerFirstName")?, "Don");
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await?.unwrap();
    assert_eq!(row.str("Email")?, "donh@contoso.com");
    Ok(())
}

#[tokio::test]
async fn m02_one_request_instead_of_two() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let departments = client.table::<Department>();
    let sales = departments.get(Department::primary().name("Sales")).await?.unwrap();
    assert_eq!((sales.manager.first_name.as_str(), recorder.count()), ("Don", 1));
    let staff = client.table::<Employee>();
    let manager = Employee::primary().department("Sales").id(sales.manager_id);
    assert_eq!(staff.get(manager).await?.unwrap().contact, sales.manager);
    assert_eq!(recorder.count(), 2, "what the normalised form needs");
    Ok(())
}

#[tokio::test]
async fn m04_both_copies_change_in_one_transaction() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let mut page = client.set::<Page>("Staff").load(Keys::partition("Sales")).await?;
    let manager = page.department.manager_id;
    let don = page.employees.iter_mut().find(|employee| employee.id == manager).unwrap();
    don.contact.email = "don@contoso.com".into();
    page.department.manager = don.contact.clone();
    let stale = page.department.clone();
    recorder.clear();
    let mut egt = client.transaction();
    egt.replace(don)?.replace(&page.department)?;
    egt.commit().await?;
    assert_eq!(recorder.count(), 1);
    let page = client.set::<Page>("Staff").load(Keys::partition("Sales")).await?;
    assert_eq!(page.department.manager, page.employees[0].contact);
    let mut don = page.employees[0].clone();
    don.contact.email = "other@contoso.com".into();
    let mut egt = client.transaction();
    egt.replace(&don)?.replace(&stale)?;
    assert!(egt.commit().await.unwrap_err().is_precondition_failed());
    let page = client.set::<Page>("Staff").load(Keys::partition("Sales")).await?;
    assert_eq!(page.employees[0].contact.email, "don@contoso.com", "neither was changed");
    Ok(())
}
