//! Sets with `allow(same_keys)`: a row's EntityType alone says which member it is.

use entable::prelude::*;

use crate::fixture::client;

/// The employees and departments of the design guide: both have numbers as RowKeys, which may meet.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    allow(same_keys),
    index(ByEmail, row_key = "email_{email}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    age: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{name}", row_key = "{code:06}", allow(same_keys))]
struct Department {
    name: String,
    code: u32,
    employee_count: i32,
}

#[derive(Debug, Clone, PartialEq, EntitySet)]
#[table(allow(same_keys))]
enum StaffRow {
    Employee(Employee),
    Department(Department),
}

fn employee(id: u32) -> Employee {
    let email = format!("{id}@contoso.com");
    Employee { department: "Sales".into(), id, email, age: 34 }
}

fn department(code: u32) -> Department {
    Department { name: "Sales".into(), code, employee_count: 153 }
}

/// Stores employees 11 and 13, and between them department 12.
async fn mixed() -> Result<Client, Error> {
    let (_, client) = client().await;
    for id in [11, 13] {
        client.table::<Employee>().insert(&employee(id)).await?;
    }
    client.table::<Department>().insert(&department(12)).await?;
    Ok(client)
}

#[tokio::test]
async fn a_set_tells_its_members_apart() -> Result<(), Error> {
    let client = mixed().await?;
    let set = client.set::<StaffRow>("Staff");
    let rows = set.query(Keys::partition("Sales")).collect().await?;
    let read: Vec<_> = rows.into_iter().map(Stored::into_inner).collect();
    let employees = [11, 13].map(|id| StaffRow::from(employee(id)));
    assert_eq!(read, [employees[0].clone(), department(12).into(), employees[1].clone()]);
    let row = set.get(("Sales", "000012")).await?.unwrap();
    assert_eq!(*row.narrow::<Department>().unwrap(), department(12));
    Ok(())
}

#[tokio::test]
async fn a_query_of_a_member_asks_for_its_type() -> Result<(), Error> {
    let client = mixed().await?;
    let employees = client.table::<Employee>();
    let some = || employees.query(Employee::primary().department("Sales").id_range(10..=13));
    assert_eq!(
        some().explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge '000010') and (RowKey le '000013') and (EntityType eq 'Employee')"
    );
    assert_eq!(some().collect().await?.len(), 2);
    assert_eq!(some().count().await?, 2);
    assert_eq!(some().take(2).collect().await?.len(), 2);
    let departments = client.table::<Department>();
    let range = Department::primary().name("Sales").code_range(11..13);
    let found = departments.query(range).collect().await?;
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), [12]);
    Ok(())
}

#[tokio::test]
async fn a_read_of_a_foreign_row_is_a_typed_error() -> Result<(), Error> {
    let client = mixed().await?;
    let at = || Employee::primary().department("Sales").id(12);
    let error = client.table::<Employee>().get(at()).await.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    assert_eq!(error.entity_type(), Some("Department"));
    assert_eq!(error.keys(), Some(("Sales", "000012")));
    Ok(())
}

/// Checks that a write was refused because of the row's type, and changed nothing.
async fn assert_refused<T: std::fmt::Debug>(
    client: &Client,
    verb: &str,
    written: Result<T, Error>,
) -> Result<(), Error> {
    let error = written.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{verb}: {error}");
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    let kept = rows.iter().filter(|row| row.member_name() == "Employee").count();
    assert_eq!((rows.len(), kept), (3, 2), "{verb}");
    Ok(())
}

#[tokio::test]
async fn no_verb_writes_over_a_row_of_another_member() -> Result<(), Error> {
    let client = mixed().await?;
    let employees = client.table::<Employee>();
    let taken = employees.insert(&employee(12)).await.unwrap_err();
    assert!(taken.is_conflict(), "{taken}");
    let at = || Employee::primary().department("Sales").id(12);
    let other = employee(12);
    assert_refused(&client, "insert_or_replace", employees.insert_or_replace(&other).await).await?;
    assert_refused(&client, "insert_or_merge", employees.insert_or_merge(&other).await).await?;
    assert_refused(&client, "replace_any", employees.replace_any(&other).await).await?;
    let patch = Employee::patch().age(35);
    assert_refused(&client, "patch_at", employees.patch_at(at(), patch).await).await?;
    let update = employees.update(at(), |one| Ok(one.age += 1)).await;
    assert_refused(&client, "update", update).await?;
    assert_refused(&client, "delete_at", employees.delete_at(at()).await).await
}

#[tokio::test]
async fn no_verb_of_a_type_without_copies_writes_over_a_row_of_another_member() -> Result<(), Error>
{
    let client = mixed().await?;
    let departments = client.table::<Department>();
    let other = department(11);
    let at = || Department::primary().name("Sales").code(11);
    let written = departments.insert_or_replace(&other).await;
    assert_refused(&client, "insert_or_replace", written).await?;
    let written = departments.insert_or_merge(&other).await;
    assert_refused(&client, "insert_or_merge", written).await?;
    assert_refused(&client, "replace_any", departments.replace_any(&other).await).await?;
    let patch = Department::patch().employee_count(1);
    assert_refused(&client, "patch_at", departments.patch_at(at(), patch).await).await?;
    assert_refused(&client, "delete_at", departments.delete_at(at()).await).await?;
    let mut transaction = departments.transaction();
    transaction.delete_at(at())?;
    assert_refused(&client, "a transaction", transaction.commit().await).await
}

#[tokio::test]
async fn a_stale_entity_does_not_replace_a_row_of_another_member() -> Result<(), Error> {
    let client = mixed().await?;
    let employees = client.table::<Employee>();
    let at = || Employee::primary().department("Sales").id(11);
    let stale = employees.get(at()).await?.unwrap();
    assert!(employees.delete_at(at()).await?);
    client.table::<Department>().insert(&department(11)).await?;
    assert!(employees.replace(&stale).await.unwrap_err().is_precondition_failed());
    assert!(employees.delete(&stale).await.unwrap_err().is_precondition_failed());
    let by_email = Employee::by_email().department("Sales").email("11@contoso.com").id(11);
    assert!(employees.get(by_email).await?.is_none(), "the copy went with its employee");
    Ok(())
}

#[tokio::test]
async fn own_rows_are_written_with_their_copies() -> Result<(), Error> {
    let client = mixed().await?;
    let employees = client.table::<Employee>();
    let changed = Employee { email: "don@contoso.com".into(), ..employee(11) };
    employees.insert_or_replace(&changed).await?;
    let at = |email: &str| Employee::by_email().department("Sales").email(email).id(11);
    assert!(employees.get(at("don@contoso.com")).await?.is_some());
    assert!(employees.get(at("11@contoso.com")).await?.is_none());
    assert!(employees.delete_at(Employee::primary().department("Sales").id(11)).await?);
    assert!(!employees.delete_at(Employee::primary().department("Sales").id(11)).await?);
    assert!(employees.get(at("don@contoso.com")).await?.is_none());
    Ok(())
}
