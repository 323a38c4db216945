//! Tests versions of one type: read through conversions, written as the current one.

use std::{convert::Infallible, num::ParseIntError};

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};

mod v1 {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByEmail, row_key = "email_{email}"),
        index(ByName, row_key = "name_{name}_{id:06}", only(age))
    )]
    pub struct EmployeeV1 {
        pub department: String,
        pub id: u32,
        pub name: String,
        pub age: String,
        pub email: String,
    }
}

mod v2 {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        version = 2,
        upgrade_from(v1::EmployeeV1),
        index(ByEmail, row_key = "email_{email:lower}")
    )]
    pub struct EmployeeV2 {
        pub department: String,
        pub id: u32,
        pub name: String,
        pub age: i32,
        pub email: String,
    }
}

impl TryFrom<v1::EmployeeV1> for v2::EmployeeV2 {
    type Error = ParseIntError;

    fn try_from(old: v1::EmployeeV1) -> Result<Self, ParseIntError> {
        let v1::EmployeeV1 { department, id, name, age, email } = old;
        Ok(Self { department, id, name, age: age.parse()?, email })
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    version = 3,
    upgrade_from(v2::EmployeeV2),
    index(ByEmail, row_key = "email_{email:lower}")
)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub email: String,
}

impl From<v2::EmployeeV2> for Employee {
    fn from(old: v2::EmployeeV2) -> Self {
        let v2::EmployeeV2 { department, id, name, age, email } = old;
        let (first, last) = name.split_once(' ').unwrap_or(("", &name));
        let (first_name, last_name) = (first.to_owned(), last.to_owned());
        Self { department, id, first_name, last_name, age, email }
    }
}

const _: fn(v2::EmployeeV2) -> Result<Employee, Infallible> = Employee::try_from;

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Name {
    id: u32,
    last_name: String,
}

#[derive(Debug, EntitySet)]
enum Row {
    Employee(Employee),
}

fn first(id: u32) -> v1::EmployeeV1 {
    v1::EmployeeV1 {
        department: "Sales".into(),
        id,
        name: "Don Hall".into(),
        age: "34".into(),
        email: format!("Don{id}@contoso.com"),
    }
}

fn current(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: "Don".into(),
        last_name: "Hall".into(),
        age: 34,
        email: format!("Don{id}@contoso.com"),
    }
}

/// One row of each version: 1, 2, 3.
async fn staff() -> (Recorder, Table<Employee>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    client.create_table("Staff").await.unwrap();
    client.table::<v1::EmployeeV1>().insert(&first(1)).await.unwrap();
    client.table::<v2::EmployeeV2>().insert(&first(2).try_into().unwrap()).await.unwrap();
    client.table::<Employee>().insert(&current(3)).await.unwrap();
    recorder.clear();
    (recorder, client.table())
}

async fn markers(staff: &Table<Employee>) -> Vec<String> {
    let rows = staff.client().dynamic("Staff").query(Keys::partition("Sales")).collect().await;
    let marker = |row: &Stored<DynamicEntity>| {
        format!("{} {}", row.row_key(), row.entity_type().unwrap_or_default())
    };
    rows.unwrap().iter().map(marker).collect()
}

fn point(id: u32) -> Point<Employee> {
    Employee::primary().department("Sales").id(id)
}

#[tokio::test]
async fn every_way_of_reading_brings_old_rows_up_to_date() -> Result<(), Error> {
    let (_, staff) = staff().await;
    for id in 1..=3 {
        assert_eq!(*staff.get(point(id)).await?.unwrap(), current(id));
        let name = staff.get_as::<Name>(point(id)).await?.unwrap();
        assert_eq!(*name, Name { id, last_name: "Hall".into() });
        assert!(name.timestamp().is_some());
    }
    let all = staff.query(Employee::primary().department("Sales")).collect().await?;
    assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3]);
    let names = staff.query(Employee::primary().department("Sales")).select::<Name>();
    assert!(names.explain().select.is_empty(), "old rows have other properties");
    assert_eq!(names.collect().await?.len(), 3);
    let copies = staff.query(Employee::by_email().department("Sales")).collect().await?;
    assert_eq!(copies.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3]);
    let scan = staff.query(Employee::scan()).filter(Employee::ID.ge(2));
    assert_eq!(
        scan.explain().filter,
        "((EntityType eq 'Employee') or ((EntityType ge 'Employee.v') and (EntityType lt 'Employee.w'))) and (RowKey ge 'empid_000002')"
    );
    assert_eq!(scan.collect().await?.len(), 2);
    let rows = staff.client().set::<Row>("Staff").query(Keys::partition("Sales"));
    let ids = |rows: Vec<Stored<Row>>| -> Vec<u32> {
        rows.iter()
            .map(|row| match &**row {
                Row::Employee(employee) => employee.id,
            })
            .collect()
    };
    assert_eq!(ids(rows.collect().await?), [1, 2, 3]);
    let error = rows.clone().include_copies().collect().await.unwrap_err();
    assert!(error.is_decode(), "version 1 has a partial copy: {error}");
    let emails =
        staff.client().set::<Row>("Staff").query(Keys::partition("Sales").prefix("email_"));
    let copies = emails.include_copies().collect().await?;
    assert_eq!(copies[0].index(), Some("ByEmail"));
    assert_eq!(ids(copies), [1, 2, 3]);
    Ok(())
}

#[tokio::test]
async fn writing_stores_the_current_version_and_its_copies() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let mut old = staff.get(point(1)).await?.unwrap();
    old.age = 35;
    staff.replace(&old).await?;
    assert!(staff.replace(&old).await.unwrap_err().is_precondition_failed());
    staff
        .update(point(2), |employee| {
            employee.age = 36;
            Ok(())
        })
        .await?;
    assert_eq!(
        markers(&staff).await,
        [
            "email_don1@contoso.com Employee.v3#ByEmail",
            "email_don2@contoso.com Employee.v3#ByEmail",
            "email_don3@contoso.com Employee.v3#ByEmail",
            "empid_000001 Employee.v3",
            "empid_000002 Employee.v3",
            "empid_000003 Employee.v3",
        ],
        "the copies of version 1, one of them under another key, are gone"
    );
    assert_eq!(staff.get(point(1)).await?.unwrap().age, 35);
    Ok(())
}

#[tokio::test]
async fn patching_and_deleting_know_the_old_rows() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.patch_at(point(1), Employee::patch().last_name("Jones")).await?;
    let patched = staff.get(point(1)).await?.unwrap();
    assert_eq!(*patched, Employee { last_name: "Jones".into(), ..current(1) });
    staff.delete_at(point(2)).await?;
    let through = staff.query(Employee::by_email().department("Sales")).collect().await?;
    staff.delete(&through[0]).await?;
    staff.delete_at(point(3)).await?;
    assert!(markers(&staff).await.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_old_copy_is_written_through_its_primary() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let copies = staff.query(Employee::by_email().department("Sales")).collect().await?;
    let mut old = copies[0].clone();
    assert_eq!((old.id, old.index()), (1, Some("ByEmail")));
    old.age = 40;
    staff.replace(&old).await?;
    assert_eq!(staff.get(point(1)).await?.unwrap().age, 40);
    Ok(())
}

#[tokio::test]
async fn a_newer_version_is_an_error() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let newer = DynamicEntity::new("Sales", "empid_000004").with("EntityType", "Employee.v4");
    staff.client().dynamic("Staff").insert(&newer).await?;
    let expected = "unrecognized entity: found version 4 of `Employee`, but this program knows versions 1 to 3 (table \
                    `Staff`, PartitionKey `Sales`, RowKey `empid_000004`, EntityType `Employee.v4`)";
    let set = staff.client().set::<Row>("Staff");
    for error in [
        staff.get(point(4)).await.unwrap_err(),
        staff.query(Employee::primary().department("Sales")).collect().await.unwrap_err(),
        staff.query(Employee::scan()).collect().await.unwrap_err(),
        set.get(("Sales", "empid_000004")).await.unwrap_err(),
    ] {
        assert!(error.is_unrecognized_entity());
        assert_eq!(error.entity_type(), Some("Employee.v4"));
        assert_eq!(error.to_string().replace(", property `EntityType`", ""), expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_row_that_cannot_be_converted_is_an_error() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let table = staff.client().table::<v1::EmployeeV1>();
    table.insert(&v1::EmployeeV1 { age: "old".into(), ..first(5) }).await?;
    let error = staff.get(point(5)).await.unwrap_err();
    assert!(error.is_decode());
    assert_eq!(
        error.to_string(),
        "version 1 of `Employee` cannot be read as version 2: invalid digit found in string (table `Staff`, PartitionKey `Sales`, RowKey `empid_000005`)"
    );
    Ok(())
}

#[tokio::test]
async fn version_1_has_two_names() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let dynamic = staff.client().dynamic("Staff");
    let mut row = dynamic.get("Sales", "empid_000001").await?.unwrap();
    row.set("EntityType", "Employee.v1");
    dynamic.replace(&row).await?;
    assert_eq!(*staff.get(point(1)).await?.unwrap(), current(1));
    let set = staff.client().set::<Row>("Staff");
    assert!(set.get(("Sales", "empid_000001")).await?.is_some());
    Ok(())
}
