//! Tests entities without a type: bags, resolvers, filters.

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
    staff.patch(&found).await?;
    assert_eq!(recorder.count(), 2);
    let Some(Request::Apply { operations, .. }) = recorder.requests().last().cloned() else {
        panic!("{recorder}")
    };
    assert_eq!(operations, [(Verb::Merge, "department".to_owned())]);
    let row = client.set::<StaffRow>("Staff").get(("Sales", "department")).await?.unwrap();
    assert_eq!(*row, StaffRow::Department(Department { employee_count: 2, ..department() }));
    let mut stale = stale;
    stale.set("EmployeeCount", 9);
    assert!(staff.patch(&stale).await.unwrap_err().is_precondition_failed());

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

#[tokio::test]
async fn a_merge_removes_nothing_and_says_so() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.dynamic("Staff");
    let mut found = staff.get("Sales", "department").await?.unwrap();
    found.remove("EmployeeCount");
    recorder.clear();
    let error = staff.patch(&found).await.unwrap_err();
    assert!(error.is_invalid());
    assert_eq!(
        error.to_string(),
        "a merge cannot remove a property; write the entity with `replace` (table `Staff`, PartitionKey `Sales`, \
         RowKey `department`, property `EmployeeCount`)"
    );
    assert_eq!(recorder.count(), 0);
    staff.replace(&found).await?;
    let found = staff.get("Sales", "department").await?.unwrap();
    assert_eq!((found.get("EmployeeCount"), found.entity_type()), (None, Some("Department")));
    Ok(())
}

#[tokio::test]
async fn an_entity_is_written_back_where_it_was_read() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.dynamic("Staff");
    let mut found = staff.get("Sales", "department").await?.unwrap();
    *found = DynamicEntity::new("Sales", "empid_000223").with("Age", 1);
    recorder.clear();
    for error in [staff.replace(&found).await.unwrap_err(), staff.patch(&found).await.unwrap_err()]
    {
        assert!(error.is_invalid());
        assert_eq!(error.keys(), Some(("Sales", "department")));
        assert!(error.message().contains("`empid_000223`"), "{error}");
    }
    assert!(staff.transaction().replace(&found).is_err());
    assert_eq!(recorder.count(), 0);
    Ok(())
}

#[tokio::test]
async fn an_update_reads_again_where_another_writer_was_first() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let staff = client.dynamic("Staff");
    let bump = |row: &mut DynamicEntity| -> Result<(), BoxError> {
        let count = row.i32("EmployeeCount")?;
        row.set("EmployeeCount", count + 1);
        Ok(())
    };
    assert_eq!(staff.update("Sales", "department", bump).await?.i32("EmployeeCount")?, 2);
    assert_eq!(recorder.count(), 2);
    let updates = (0..10).map(|_| staff.update("Sales", "department", bump));
    futures_util::future::try_join_all(updates).await?;
    let found = staff.get("Sales", "department").await?.unwrap();
    assert_eq!((found.i32("EmployeeCount")?, found.entity_type()), (12, Some("Department")));
    let missing = staff.update("Sales", "nobody", bump).await.unwrap_err();
    assert!(missing.is_not_found());
    let rejected = staff.update("Sales", "empid_000223", bump).await.unwrap_err();
    assert!(rejected.is_rejected());
    assert_eq!(rejected.keys(), Some(("Sales", "empid_000223")));
    assert!(rejected.to_string().contains("found no such property"), "{rejected}");
    Ok(())
}

#[derive(Debug, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "clerk_{id:06}",
    index(ByAge, row_key = "clerkage_{age}_{id:06}", only(email))
)]
struct Clerk {
    department: String,
    id: u32,
    age: u8,
    email: String,
    desk: String,
}

#[tokio::test]
async fn partial_copies_are_resolved() -> Result<(), Error> {
    let (recorder, client) = client().await;
    let clerk = |id: u32, age| Clerk {
        department: "Sales".into(),
        id,
        age,
        email: format!("{id}@contoso.com"),
        desk: "4".into(),
    };
    client.bulk().insert_all([clerk(1, 40), clerk(2, 30)]).await?.into_result()?;
    recorder.clear();
    let copies = client.table::<Clerk>().query(Clerk::by_age().department("Sales"));
    let emails = copies.filter(Clerk::EMAIL.ge("1")).resolve(|_, row_key, _, properties, _| {
        assert!(properties.get("Desk").is_none(), "{row_key}");
        Ok(properties.get("Email").and_then(Value::as_str).unwrap_or_default().to_owned())
    });
    assert_eq!(emails.collect().await?, ["2@contoso.com", "1@contoso.com"]);
    assert_eq!(recorder.count(), 1);
    Ok(())
}

#[tokio::test]
async fn what_a_resolver_refuses_loses_no_other_row() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let rows = client.dynamic("Staff").query(Keys::partition("Sales"));
    let typed = rows.resolve(|_, row_key, _, properties, _| match properties.get("EntityType") {
        Some(_) => Ok(row_key.to_owned()),
        None => Err(Error::new(ErrorKind::UnrecognizedEntity, "no type")),
    });
    let found = typed.results().collect().await?;
    assert_eq!(found.iter().filter(|row| row.is_ok()).count(), 4);
    assert_eq!(found.iter().filter(|row| row.is_err()).count(), 2, "the reviews");
    Ok(())
}

#[tokio::test]
async fn names_of_the_library_are_written_only_where_they_are_meant() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.dynamic("Staff");
    let is_refused = |result: Result<(), Error>| result.is_err_and(|error| error.is_invalid());
    let names = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];
    for name in names.into_iter().chain(["EntableMoving", "EntableMovedBy", "EntitySeal"]) {
        let row = DynamicEntity::new("Sales", "x").with(name, "1");
        assert!(is_refused(staff.insert(&row).await.map(drop)), "{name}");
        assert!(is_refused(staff.insert_or_replace(&row).await.map(drop)), "{name}");
        assert!(is_refused(staff.insert_or_merge(&row).await.map(drop)), "{name}");
        assert!(is_refused(staff.transaction().insert(&row).map(drop)), "{name}");
        let bulk = staff.bulk().insert_or_replace_all([row.clone()]).await?;
        assert_eq!(bulk.done, 0, "{name}");
        let mut read = staff.get("Sales", "department").await?.unwrap();
        read.set(name, "1");
        assert!(is_refused(staff.patch(&read).await.map(drop)), "{name}");
        assert!(is_refused(staff.replace(&read).await.map(drop)), "{name}");
        assert!(is_refused(staff.transaction().replace(&read).map(drop)), "{name}");
    }
    let row = DynamicEntity::new("Sales", "~e3_x");
    assert!(is_refused(staff.insert(&row).await.map(drop)));
    assert!(is_refused(staff.insert_or_replace(&row).await.map(drop)));
    assert!(is_refused(staff.insert_or_merge(&row).await.map(drop)));
    assert!(is_refused(staff.transaction().insert(&row).map(drop)));

    // Meant names are written. What was read is written back, and nothing else in its place.
    staff.insert(&row.with_framework_names()).await?;
    // A backup writes what it read into another table.
    let read = staff.get("Sales", "~e3_x").await?.unwrap();
    client.create_table("Backup").await?;
    client.dynamic("Backup").insert(&read).await?;
    let row = DynamicEntity::new("Sales", "x").with("Src", "1").with_framework_names();
    staff.insert(&row).await?;
    let mut read = staff.get("Sales", "x").await?.unwrap();
    read.set("More", 1);
    let mut read = staff.replace(&read).await?;
    read.set("More", 2);
    staff.patch(&read).await?;
    let mut read = staff.get("Sales", "x").await?.unwrap();
    assert_eq!((read.str("Src")?, read.i32("More")?), ("1", 2));
    read.set("Src", "2");
    assert!(is_refused(staff.replace(&read).await.map(drop)));
    read.allow_framework_names();
    staff.replace(&read).await?;
    // Names that only look like these are the program's.
    let row = DynamicEntity::new("Sales", "y").with("EntableMovie", 1).with("SrcX", 1);
    staff.insert(&row).await?;
    Ok(())
}
