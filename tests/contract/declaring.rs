//! Tests the declaration of entities and the opening of clients.

use entable::prelude::*;

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
    pub salary: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
pub struct Department {
    pub department: String,
    pub employee_count: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}_{year:04}")]
pub struct Review {
    pub department: String,
    pub id: u32,
    pub year: u16,
    pub manager_rating: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
pub struct Contact {
    pub email: String,
    pub first_name: String,
}

#[derive(Debug, Clone, PartialEq, Properties)]
pub struct Address {
    pub city: String,
    pub zip: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
pub enum Grade {
    Junior,
    Senior,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Customers",
    partition_key = "{country}",
    row_key = "customer_{id}",
    entity_type = "Client",
    rename_all = "camelCase",
    validate = has_a_name,
    index(ByName, row_key = "name_{name:lower}_{id}", only(grade)),
    index(Senior, row_key = "senior_{id}", when = is_senior, except(notes))
)]
pub struct Customer {
    pub country: String,
    pub id: u64,
    pub name: String,
    pub grade: Grade,
    #[table(flatten(prefix = "home"))]
    pub address: Address,
    #[table(json)]
    pub tags: Vec<String>,
    #[table(rename = "remarks")]
    pub notes: Option<String>,
    #[table(default)]
    pub visits: i64,
    #[table(skip)]
    pub cached: bool,
    #[table(extra)]
    pub rest: Bag,
}

fn has_a_name(customer: &Customer) -> Result<(), BoxError> {
    if customer.name.is_empty() { Err("a customer has a name".into()) } else { Ok(()) }
}

fn is_senior(customer: &Customer) -> bool {
    customer.grade == Grade::Senior
}

pub fn employee(id: u32, last_name: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        last_name: last_name.into(),
        age: 34,
        email: format!("{}{id}@contoso.com", last_name.to_lowercase()),
        salary: None,
    }
}

pub fn customer() -> Customer {
    Customer {
        country: "DE".into(),
        id: 7,
        name: "Ann".into(),
        grade: Grade::Senior,
        address: Address { city: "Berlin".into(), zip: None },
        tags: vec!["a".into()],
        notes: None,
        visits: 3,
        cached: true,
        rest: Bag::new(),
    }
}

/// Handles go anywhere; a query keeps nothing borrowed.
const fn is_send_sync_clone<T: Send + Sync + Clone + 'static>() {}
const fn is_send<T: Send + 'static>() {}
const _: () = {
    is_send_sync_clone::<Client>();
    is_send_sync_clone::<Table<Employee>>();
    is_send_sync_clone::<Query<Employee, Stored<Employee>>>();
    is_send_sync_clone::<Query<Employee, Stored<Contact>>>();
    is_send_sync_clone::<Stored<Employee>>();
    is_send_sync_clone::<Point<Employee>>();
    is_send_sync_clone::<Range<Employee>>();
    is_send_sync_clone::<Partition<Employee>>();
    is_send_sync_clone::<Scan<Employee>>();
    is_send_sync_clone::<Cursor>();
    is_send_sync_clone::<Filter>();
    is_send_sync_clone::<Error>();
    is_send_sync_clone::<Bulk>();
    is_send::<Transaction>();
};

#[tokio::test]
async fn clients_are_opened_in_one_line() -> Result<(), Error> {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::memory();
    let staff: Table<Employee> = client.table();
    assert!(staff.create_if_not_exists().await?);
    assert!(!staff.create_if_not_exists().await?);
    let archive: Table<Employee> = client.table_named("Archive");
    archive.create_if_not_exists().await?;
    let client = Client::open(directory.path().join("staff.db"))?;
    client.table::<Employee>().create_if_not_exists().await?;
    let client = Client::builder().backend(Memory::new()).build()?;
    assert!(client.tables().await?.is_empty());
    assert!(Client::builder().build().unwrap_err().is_invalid());
    Ok(())
}

#[tokio::test]
async fn everything_that_is_declared_is_stored_and_read_back() -> Result<(), Error> {
    let client = Client::memory();
    let customers = client.table::<Customer>();
    customers.create().await?;
    let stored = customers.insert(&customer()).await?;
    let expected = Customer { cached: false, ..customer() };
    assert_eq!(*stored, expected);
    let read = customers.get(Customer::primary().country("DE").id(7_u64)).await?.unwrap();
    assert_eq!(*read, expected);
    let raw = client.dynamic("Customers").get("DE", "customer_00000000000000000007").await?;
    let raw = raw.unwrap();
    assert_eq!(raw.entity_type(), Some("Client"));
    assert_eq!(raw.str("homeCity")?, "Berlin");
    assert_eq!(raw.str("grade")?, "Senior");
    assert_eq!(raw.i64("visits")?, 3);
    assert!(raw.get("cached").is_none() && raw.get("remarks").is_none());
    let nameless = Customer { name: String::new(), ..customer() };
    assert!(customers.insert(&nameless).await.unwrap_err().is_rejected());
    Ok(())
}

#[test]
fn the_examples_of_the_contract_come_out_exactly() -> Result<(), Error> {
    let row = |e: &Employee| e.to_row().map(|row| row.row_key().to_owned());
    assert_eq!(row(&employee(223, "Jones"))?, "empid_000223");
    let by_email = Employee::by_email().department("Sales").email("JonesJ@contoso.com");
    assert_eq!(by_email.row_key(), "email_jonesj@contoso.com");
    let review = Employee::primary().department("Sales").id(123);
    assert_eq!(review.row_key(), "empid_000123");
    let review = Review::primary().department("Sales").id(123).year(2012);
    assert_eq!(review.row_key(), "empid_000123_2012");
    let too_wide = Employee { id: 1_000_000, ..employee(1, "Jones") };
    let error = too_wide.to_row().unwrap_err();
    assert!(error.is_invalid(), "never cut: {error:?}");
    Ok(())
}
