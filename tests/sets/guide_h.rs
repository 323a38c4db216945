//! H: relationships: one-to-many, one-to-one, joins in the client, inheritance.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

/// Data of a department that its employees carry along.
#[derive(Debug, Clone, PartialEq, Properties)]
pub struct DepartmentInfo {
    pub title: String,
    pub manager: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub age: i32,
    #[table(flatten(prefix = "Department"))]
    pub department_info: Option<DepartmentInfo>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "department")]
pub struct Department {
    pub name: String,
    pub employee_count: i32,
    #[table(flatten(prefix = ""))]
    pub info: DepartmentInfo,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
pub enum StaffRow {
    Employee(Employee),
    Department(Department),
}

fn info() -> DepartmentInfo {
    DepartmentInfo { title: "Sales and support".into(), manager: Some("Jun".into()) }
}

fn employee(id: u32) -> Employee {
    Employee { department: "Sales".into(), id, age: 30, department_info: Some(info()) }
}

fn department(employee_count: i32) -> Department {
    Department { name: "Sales".into(), employee_count, info: info() }
}

async fn client(tables: &[&str]) -> (Recorder, Client) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    for table in tables {
        client.create_table(table).await.unwrap();
    }
    recorder.clear();
    (recorder, client)
}

#[tokio::test]
async fn h01_many_departments_with_many_employees() -> Result<(), Error> {
    let (_, client) = client(&["Staff"]).await;
    let departments = (0..40).map(|n| {
        StaffRow::from(Department { name: format!("dept{n:02}"), employee_count: 25, info: info() })
    });
    let employees = (0..1000).map(|n| {
        StaffRow::from(Employee { department: format!("dept{:02}", n % 40), ..employee(n) })
    });
    let report = client.bulk().insert_all(departments.chain(employees)).await?;
    assert_eq!((report.done, report.failed.len()), (1040, 0));
    let one = client.set::<StaffRow>("Staff").query(Keys::partition("dept07")).collect().await?;
    assert_eq!(one.len(), 26);
    Ok(())
}

#[tokio::test]
async fn h02_department_and_employees_share_a_partition() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff"]).await;
    let mut egt = client.transaction();
    egt.insert(&department(2))?.insert(&employee(1))?.insert(&employee(2))?;
    egt.commit().await?;
    assert_eq!(recorder.count(), 1);
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    assert!(matches!(**rows.first().unwrap(), StaffRow::Department(_)));
    assert_eq!(rows.len(), 3);
    Ok(())
}

#[tokio::test]
async fn h03_an_employee_and_the_count_in_one_transaction() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff"]).await;
    let departments = client.table::<Department>();
    let mut sales = departments.insert(&department(0)).await?;
    let stale = sales.clone();
    sales.employee_count += 1;
    recorder.clear();
    let mut egt = client.transaction();
    egt.insert(&employee(1))?.replace(&sales)?;
    egt.commit().await?;
    assert_eq!(recorder.count(), 1);
    let mut stale = stale;
    stale.employee_count += 1;
    let mut egt = client.transaction();
    egt.insert(&employee(2))?.replace(&stale)?;
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_precondition_failed());
    assert_eq!(error.failed_index(), Some(1));
    let staff = client.table::<Employee>();
    let second = Employee::primary().department("Sales").id(2);
    assert!(staff.get(second).await?.is_none(), "nothing was applied");
    Ok(())
}

#[tokio::test]
async fn h04_an_employee_does_not_move_by_a_transaction() -> Result<(), Error> {
    let (_, client) = client(&["Staff"]).await;
    let staff = client.table::<Employee>();
    let mut moved = staff.insert(&employee(1)).await?;
    moved.department = "Marketing".into();
    let error = client.transaction().replace(&moved).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("move_to"), "{error}");
    Ok(())
}

mod apart {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Departments", partition_key = "departments", row_key = "{name}")]
    pub struct Department {
        pub name: String,
        pub employee_count: i32,
        #[table(flatten)]
        pub manager: Option<KeyRef<Employee>>,
    }

    pub fn department() -> Department {
        Department { name: "Sales".into(), employee_count: 1, manager: None }
    }
}

#[tokio::test]
async fn h05_types_in_different_tables_and_stores() -> Result<(), Error> {
    let (_, client) = client(&["Staff", "Departments"]).await;
    let elsewhere = Client::memory();
    elsewhere.create_table("Departments").await?;
    elsewhere.table::<apart::Department>().insert(&apart::department()).await?;
    client.table::<apart::Department>().insert(&apart::department()).await?;
    let mut egt = client.transaction();
    let error = egt.insert(&employee(1))?.insert(&apart::department()).unwrap_err();
    assert!(error.is_invalid());
    assert!(error.to_string().contains("must be in one table"), "{error}");
    Ok(())
}

#[tokio::test]
async fn h07_an_employee_carries_its_departments_data() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff"]).await;
    let staff = client.table::<Employee>();
    staff.insert(&employee(1)).await?;
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await?.unwrap();
    assert_eq!(row.str("DepartmentTitle")?, "Sales and support");
    recorder.clear();
    let found = staff.get(Employee::primary().department("Sales").id(1)).await?.unwrap();
    assert_eq!(found.department_info, Some(info()));
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test]
async fn h08_a_new_manager_reaches_every_employee() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff"]).await;
    client.bulk().insert_all((0..250).map(employee)).await?;
    let new = DepartmentInfo { manager: Some("Ken".into()), ..info() };
    let staff = client.table::<Employee>();
    let all = || staff.query(Employee::primary().department("Sales")).page_size(100);
    let (progress, saved) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(None)));
    let save = saved.clone();
    let recorded = progress.clone();
    let first = staff.bulk().on_progress(move |p| *recorded.lock().unwrap() = p.done);
    let first = first.on_checkpoint(move |at| {
        save.lock().unwrap().get_or_insert_with(|| at.to_string());
    });
    let mut left = 100;
    let failed = first.update_all(all(), |employee| {
        // The process stops in the second batch.
        left -= 1;
        if left < 0 {
            return Err("stopped".into());
        }
        employee.department_info = Some(new.clone());
        Ok(())
    });
    assert_eq!(failed.await?.done, 100);
    assert_eq!(*progress.lock().unwrap(), 100);
    let checkpoint: Cursor = saved.lock().unwrap().clone().unwrap().parse()?;
    recorder.clear();
    let rest = staff.bulk().resume(checkpoint).update_all(all(), |employee| {
        employee.department_info = Some(new.clone());
        Ok(())
    });
    assert_eq!(rest.await?.done, 150);
    assert_eq!(recorder.count(), 4, "two pages, two transactions: {recorder}");
    let everyone = all().collect().await?;
    assert!(everyone.iter().all(|e| e.department_info == Some(new.clone())));
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Photos", partition_key = "{department}", row_key = "photo_{id:06}")]
pub struct Photo {
    pub department: String,
    pub id: u32,
    pub jpeg: Vec<u8>,
}

#[tokio::test]
async fn h10_one_to_one_by_convention() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff", "Photos"]).await;
    let don = client.table::<Employee>().insert(&employee(223)).await?;
    let photos = client.table::<Photo>();
    let photo = Photo { department: "Sales".into(), id: 223, jpeg: vec![1, 2] };
    photos.insert(&photo).await?;
    recorder.clear();
    assert_eq!(*photos.get(don.related()).await?.unwrap(), photo);
    let tricky = Employee::primary().department("R/D ~ #1").id(7).related::<Photo>();
    assert_eq!(tricky.keys(), Photo::primary().department("R/D ~ #1").id(7).keys());
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test]
async fn h11_one_to_one_by_reference() -> Result<(), Error> {
    let (_, client) = client(&["Staff", "Departments"]).await;
    let (staff, departments) = (client.table::<Employee>(), client.table::<apart::Department>());
    let don = staff.insert(&employee(223)).await?;
    let sales = apart::Department { manager: Some(KeyRef::from(&don)), ..apart::department() };
    departments.insert(&sales).await?;
    let row = client.dynamic("Departments").get("departments", "Sales").await?.unwrap();
    assert_eq!(
        (row.str("ManagerPartitionKey")?, row.str("ManagerRowKey")?),
        ("Sales", "empid_000223")
    );
    let sales = departments.get(apart::Department::primary().name("Sales")).await?.unwrap();
    let manager = sales.manager.clone().unwrap();
    assert_eq!(*staff.get(manager.point()).await?.unwrap(), *don);
    assert_eq!(manager, KeyRef::to(&employee(223))?);
    let managed = apart::Department::MANAGER.at(KeyRef::ROW_KEY).eq("empid_000223");
    assert_eq!(
        departments.query(apart::Department::primary()).filter(managed).collect().await?.len(),
        1
    );
    departments.insert_or_replace(&apart::department()).await?;
    let sales = departments.get(apart::Department::primary().name("Sales")).await?.unwrap();
    assert_eq!(sales.manager, None);
    Ok(())
}

#[tokio::test]
async fn h13_the_client_joins_with_a_small_table() -> Result<(), Error> {
    let (recorder, client) = client(&["Staff", "Departments"]).await;
    let departments = client.table::<apart::Department>();
    departments.insert(&apart::department()).await?;
    client.bulk().insert_all((0..20).map(employee)).await?;
    let lookup =
        Lookup::new(departments.query(apart::Department::primary()), Duration::from_secs(600));
    recorder.clear();
    let staff = client.table::<Employee>();
    for row in staff.query(Employee::primary().department("Sales")).collect().await? {
        let point = apart::Department::primary().name(&row.department);
        assert_eq!(lookup.get(&point).await?.unwrap().employee_count, 1);
    }
    assert_eq!(recorder.count(), 2, "the employees once, the departments once: {recorder}");
    lookup.refresh().await?;
    assert_eq!(recorder.count(), 3);
    Ok(())
}

/// The fields of every person.
#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Person {
    pub first_name: String,
    pub last_name: String,
}

mod people {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Person", partition_key = "person_{region}", row_key = "customer_{id:06}")]
    pub struct Customer {
        pub region: String,
        pub id: u32,
        #[table(flatten(prefix = ""))]
        pub person: Person,
        pub credit: f64,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Person", partition_key = "person_{region}", row_key = "employee_{id:06}")]
    pub struct Employee {
        pub region: String,
        pub id: u32,
        #[table(flatten(prefix = ""))]
        pub person: Person,
        pub salary: Option<f64>,
    }

    #[derive(Debug, Clone, PartialEq, EntitySet)]
    pub enum AnyPerson {
        Customer(Customer),
        Employee(Employee),
    }

    impl AnyPerson {
        pub fn base(&self) -> &Person {
            match self {
                Self::Customer(customer) => &customer.person,
                Self::Employee(employee) => &employee.person,
            }
        }
    }
}

#[tokio::test]
async fn h14_two_concrete_types_of_one_base() -> Result<(), Error> {
    use people::{AnyPerson, Customer, Employee};
    let (recorder, client) = client(&["Person"]).await;
    let person = |first: &str| Person { first_name: first.into(), last_name: "Hall".into() };
    let don = Employee { region: "eu".into(), id: 1, person: person("Don"), salary: None };
    let jun = Customer { region: "eu".into(), id: 1, person: person("Jun"), credit: 10.0 };
    let people = client.set::<AnyPerson>("Person");
    let mut egt = people.transaction();
    egt.insert(&AnyPerson::from(don.clone()))?.insert(&AnyPerson::from(jun.clone()))?;
    egt.commit().await?;
    recorder.clear();
    let named = people.query(Keys::partition("person_eu"));
    let named = named.filter(Filter::eq("LastName", "Hall")).collect().await?;
    assert_eq!(recorder.count(), 1);
    assert_eq!(*named[0], AnyPerson::Customer(jun));
    assert_eq!(*named[1], AnyPerson::Employee(don));
    assert!(named.iter().all(|row| row.base().last_name == "Hall"));
    Ok(())
}

#[tokio::test]
async fn h15_the_type_is_recognised_in_one_place() -> Result<(), Error> {
    let (_, client) = client(&["Person"]).await;
    let stranger = DynamicEntity::new("person_eu", "x").with("EntityType", "Robot");
    client.dynamic("Person").insert(&stranger).await?;
    let people = client.set::<people::AnyPerson>("Person");
    let error = people.query(Keys::partition("person_eu")).first().await.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!((error.entity_type(), error.keys()), (Some("Robot"), Some(("person_eu", "x"))));
    Ok(())
}
