//! Entities without a type: bags, resolvers, filters.

use entable::{backend::layer::Request, batch::Verb, prelude::*};

use crate::fixture::*;

#[tokio::test]
async fn a_property_is_changed_without_knowing_the_type() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.dynamic("Staff");
    let mut found = staff.get("Sales", "department").await?.unwrap();
    let stale = found.clone();
    let count = found.i32("EmployeeCount")?;
    found.set("EmployeeCount", count + 1);
    staff.merge(&found).await?;
    assert_eq!(recorder.count(), 2);
    let Some(Request::Apply { operations, .. }) = recorder.requests().last().cloned() else {
        panic!("{recorder}")
    };
    assert_eq!(operations, [(Verb::Merge, "department".to_owned())]);
    let row = client.set::<StaffRow>("Staff").get(("Sales", "department")).await?.unwrap();
    assert_eq!(*row, StaffRow::Department(Department { employee_count: 2, ..department() }));
    let mut stale = stale;
    stale.set("EmployeeCount", 9);
    assert!(staff.merge(&stale).await.unwrap_err().is_precondition_failed());

    let employee = staff.get("Sales", "empid_000223").await?.unwrap();
    let error = employee.i32("EmployeeCount").unwrap_err();
    assert!(error.is_decode());
    assert_eq!(
        error.to_string(),
        "expected Edm.Int32, found no such property (PartitionKey `Sales`, RowKey `empid_000223`, property `EmployeeCount`)"
    );
    Ok(())
}

#[tokio::test]
async fn a_resolver_makes_what_it_wants_of_each_row() -> Result<(), Error> {
    #[derive(Debug, PartialEq)]
    enum Either {
        Age(String, i32),
        Count(i32),
    }
    let (recorder, client) = staffed().await;
    let rows = client.dynamic("Staff").query(Keys::partition("Sales").rows("d".."f"));
    let rows = rows.resolve(|_, row_key, timestamp, properties, etag| {
        assert!(timestamp.is_some() && !etag.to_string().is_empty());
        match properties.get("EntityType").and_then(Value::as_str) {
            Some("Employee") => {
                let age = properties.get("Age").and_then(Value::as_i32).unwrap_or_default();
                Ok(Either::Age(row_key.to_owned(), age))
            }
            Some("Department") => {
                let count = properties.get("EmployeeCount").and_then(Value::as_i32);
                Ok(Either::Count(count.unwrap_or_default()))
            }
            _ => Err(Error::new(ErrorKind::UnrecognizedEntity, "unrecognized entity")),
        }
    });
    let error = rows.collect().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unrecognized entity (table `Staff`, PartitionKey `Sales`, RowKey `email_jones223@contoso.com`)"
    );
    let known = rows.filter(Filter::parse("EntityType eq 'Employee' or EmployeeCount ge 1")?);
    recorder.clear();
    let found = known.collect().await?;
    assert_eq!(recorder.count(), 1);
    assert_eq!(found, [Either::Count(1), Either::Age("empid_000223".into(), 34)]);
    Ok(())
}

#[tokio::test]
async fn every_query_can_be_resolved() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.table::<Employee>();
    let key = |_: &str, row_key: &str| Ok(row_key.to_owned());
    let typed = staff.query(Employee::primary().department("Sales"));
    let keys = typed.resolve(move |pk, rk, _, _, _| key(pk, rk)).collect().await?;
    assert_eq!(keys, ["empid_000223"]);
    let listed = staff.query(Employee::by_last_name().department("Sales").last_name("Jones"));
    let keys = listed.resolve(move |pk, rk, _, _, _| key(pk, rk)).collect().await?;
    assert_eq!(keys, ["empid_000223"]);
    let set = client.set::<StaffRow>("Staff").query(Keys::partition("Sales"));
    let keys = set.resolve(move |pk, rk, _, _, _| key(pk, rk)).collect().await?;
    assert_eq!(keys.len(), 4);
    Ok(())
}

#[tokio::test]
async fn a_table_scan_has_to_be_allowed() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let all = client.dynamic("Staff").query(Filter::parse("LastName eq 'Jones'")?);
    assert!(all.collect().await.unwrap_err().is_scan_refused());
    assert_eq!(all.allow_scan().collect().await?.len(), 2, "the employee and its copy");
    Ok(())
}
