//! Tests enums of entities: reading, writing, rows of other types.

use entable::prelude::*;

use crate::fixture::*;

fn keys(rows: &[Stored<impl Sized>]) -> Vec<&str> {
    rows.iter().map(Stored::row_key).collect()
}

#[tokio::test]
async fn one_query_gives_back_every_type() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    assert_eq!(recorder.count(), 1);
    assert_eq!(
        keys(&rows),
        ["department", "empid_000223", "review_000223_2012", "review_000223_2013"],
        "the copy and the list are not handed out"
    );
    assert_eq!(*rows[0], StaffRow::Department(department()));
    assert_eq!(*rows[1], StaffRow::Employee(employee(223)));
    assert_eq!(*rows[3], StaffRow::Review(review(223, 2013)));
    assert!(rows.iter().all(|row| row.timestamp().is_some() && row.status() == 200));
    Ok(())
}

#[tokio::test]
async fn a_row_is_got_by_its_keys() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.set::<StaffRow>("Staff");
    let found = staff.get(("Sales", "review_000223_2012")).await?.unwrap();
    assert_eq!(*found, StaffRow::Review(review(223, 2012)));
    let found = staff.get(Employee::primary().department("Sales").id(223)).await?.unwrap();
    assert_eq!(found.member_name(), "Employee");
    assert!(staff.get(("Sales", "empid_000001")).await?.is_none());
    assert!(staff.get(("Sales", "email_jones223@contoso.com")).await?.is_none(), "a copy");
    assert!(staff.get(Keys::partition("Sales")).await.unwrap_err().is_invalid());
    Ok(())
}

#[tokio::test]
async fn queries_have_every_finisher() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.set::<StaffRow>("Staff");
    let reviews = staff.query(Keys::partition("Sales").prefix("review_"));
    let explained = reviews.explain();
    assert_eq!(explained.class, CostClass::Range);
    assert_eq!(
        explained.filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'review_') and (RowKey lt 'review`')"
    );
    assert_eq!(reviews.stream().try_collect::<Vec<_>>().await?.len(), 2);
    assert_eq!(reviews.first().await?.unwrap().row_key(), "review_000223_2012");
    recorder.clear();
    let page = reviews.clone().page_size(1).page(None).await?;
    let cursor: Cursor = page.next.unwrap().to_string().parse()?;
    let page = reviews.clone().page_size(1).page(Some(cursor)).await?;
    assert_eq!(keys(&page.items), ["review_000223_2013"]);
    assert_eq!(recorder.count(), 2);
    assert_eq!(reviews.clone().take(1).collect().await?.len(), 1);
    let old = reviews.filter(Filter::parse("Rating ge 4")?).collect().await?;
    assert!(old.is_empty());
    let scan = staff.query(Filter::parse("Rating ge 3")?);
    assert!(scan.collect().await.unwrap_err().is_scan_refused());
    assert_eq!(scan.allow_scan().collect().await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_narrowed_row_is_written() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.set::<StaffRow>("Staff");
    let row = staff.get(("Sales", "empid_000223")).await?.unwrap();
    let mut don = row.narrow::<Employee>()?;
    don.email = "don@contoso.com".into();
    don.age = 35;
    client.table::<Employee>().replace(&don).await?;
    let copy = Employee::by_email().department("Sales").email("don@contoso.com");
    assert_eq!(client.table::<Employee>().get(copy).await?.unwrap().age, 35);
    let row = staff.get(("Sales", "department")).await?.unwrap();
    let error = row.narrow::<Employee>().unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!(
        error.to_string(),
        "unrecognized entity: expected a row of `Employee`, found `Department` (PartitionKey `Sales`, RowKey `department`, EntityType `Department`)"
    );
    Ok(())
}

#[tokio::test]
async fn values_of_a_set_are_written() -> Result<(), Error> {
    let (recorder, client) = client().await;
    let staff = client.set::<AnyRow>("Staff");
    let mut egt = staff.transaction();
    egt.insert(&AnyRow::Employee(employee(1)))?
        .insert(&AnyRow::Department(department()))?
        .insert_or_replace(&AnyRow::from(
            DynamicEntity::new("Sales", "note").with("Text", "hello"),
        ))?;
    egt.commit().await?;
    assert_eq!(recorder.count(), 2, "the list of the employee is read: {recorder}");
    let report = staff.bulk().insert_all((2..=4).map(|id| AnyRow::from(employee(id)))).await?;
    assert!(report.is_complete(), "{report:?}");
    staff.insert(&AnyRow::from(review(1, 2012))).await?;
    assert!(staff.insert(&AnyRow::from(review(1, 2012))).await.unwrap_err().is_conflict());

    let mut rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert_eq!(
        keys(&rows),
        [
            "department",
            "empid_000001",
            "empid_000002",
            "empid_000003",
            "empid_000004",
            "note",
            "review_000001_2012"
        ]
    );
    let mut egt = staff.transaction();
    for row in &mut rows {
        match &mut **row {
            AnyRow::Employee(employee) => employee.age += 1,
            AnyRow::Department(department) => department.employee_count = 4,
            AnyRow::Review(review) => review.rating += 1,
            AnyRow::Other(other) => {
                other.set("Text", "bye");
            }
        }
        egt.replace(row)?;
    }
    egt.commit().await?;
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert_eq!(*rows[0], AnyRow::Department(Department { employee_count: 4, ..department() }));
    let note = rows[5].clone().narrow::<DynamicEntity>()?;
    assert_eq!(note.str("Text")?, "bye");
    let report = staff.bulk().delete_all(rows).await?;
    assert_eq!(report.done, 7);
    let left = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
    assert!(left.is_empty(), "the copies go with their primaries: {left:?}");
    Ok(())
}

/// A large entity in a box keeps the other variants small.
#[derive(Debug, Clone, PartialEq, EntitySet)]
enum BoxedRow {
    Employee(Box<Employee>),
    Department(Department),
    #[table(other)]
    Other(Box<DynamicEntity>),
}

#[tokio::test]
async fn a_boxed_member_is_read_and_written_as_one_without_a_box() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.set::<BoxedRow>("Staff");
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert_eq!(*rows[0], BoxedRow::Department(department()));
    assert_eq!(*rows[1], BoxedRow::Employee(Box::new(employee(223))));
    assert!(matches!(&*rows[2], BoxedRow::Other(row) if row.row_key() == "review_000223_2012"));
    let narrowed: Stored<Employee> = rows[1].clone().narrow()?;
    assert_eq!(*narrowed, employee(223));
    assert!(rows[0].clone().narrow::<Employee>().unwrap_err().is_unrecognized_entity());

    staff.insert(&employee(7).into()).await?;
    let all = staff.query(Keys::partition("Sales").prefix("empid_"));
    let update = staff.bulk().update_all(all, |row| {
        if let BoxedRow::Employee(employee) = row {
            employee.age += 1;
        }
        Ok(())
    });
    assert_eq!(update.await?.done, 2);
    let employees = client.table::<Employee>();
    let found = employees.get(Employee::primary().department("Sales").id(7)).await?;
    assert_eq!(found.unwrap().age, employee(7).age + 1);
    Ok(())
}
