//! X: mixed types: storing, recognising, changing.

use entable::{Row, Value, backend::layer::Request, prelude::*};

use crate::fixture::*;

mod prefixed {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "EMPLOYEE_{id:06}",
        discriminator = row_key
    )]
    pub struct Employee {
        pub department: String,
        pub id: u32,
        pub age: i32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "DEPARTMENT_{id:06}",
        discriminator = row_key
    )]
    pub struct Department {
        pub department: String,
        pub id: u32,
        pub employee_count: i32,
    }

    #[derive(Debug, Clone, PartialEq, EntitySet)]
    pub enum Row {
        Employee(Employee),
        Department(Department),
    }
}

#[tokio::test]
async fn x01_several_types_in_one_query() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    assert_eq!((rows.len(), recorder.count()), (4, 1));
    Ok(())
}

#[tokio::test]
async fn x02_a_row_without_a_type_is_readable() -> Result<(), Error> {
    let (_, client) = client().await;
    client.dynamic("Staff").insert(&DynamicEntity::new("Sales", "x").with("A", 1)).await?;
    assert_eq!(client.dynamic("Staff").get("Sales", "x").await?.unwrap().i32("A")?, 1);
    let get = client.set::<StaffRow>("Staff").get(("Sales", "x")).await;
    assert!(get.unwrap_err().is_unrecognized_entity());
    Ok(())
}

#[tokio::test]
async fn x03_the_type_in_the_key() -> Result<(), Error> {
    let (_, client) = client().await;
    let staff = client.set::<prefixed::Row>("Staff");
    let employee = prefixed::Employee { department: "Sales".into(), id: 123, age: 34 };
    let department =
        prefixed::Department { department: "Sales".into(), id: 123, employee_count: 1 };
    staff.insert(&employee.clone().into()).await?;
    staff.insert(&department.clone().into()).await?;
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert_eq!(rows[0].row_key(), "DEPARTMENT_000123");
    assert_eq!(*rows[0], prefixed::Row::Department(department));
    assert_eq!(*rows[1], prefixed::Row::Employee(employee));
    let properties = rows[1].row().to_bag()?;
    assert!(properties.get("EntityType").is_none(), "the key says it");
    Ok(())
}

#[tokio::test]
async fn x04_a_prefix_gives_one_type() -> Result<(), Error> {
    let (_, client) = client().await;
    let staff = client.set::<prefixed::Row>("Staff");
    for id in 0..3 {
        let row = prefixed::Employee { department: "Sales".into(), id, age: 34 };
        staff.insert(&row.into()).await?;
        let row = prefixed::Department { department: "Sales".into(), id, employee_count: 1 };
        staff.insert(&row.into()).await?;
    }
    let employees = client.table::<prefixed::Employee>();
    let employees = employees.query(prefixed::Employee::primary().department("Sales"));
    assert_eq!(
        employees.explain().filter,
        "(PartitionKey eq 'Sales') and (RowKey ge 'EMPLOYEE_') and (RowKey lt 'EMPLOYEE`')"
    );
    assert_eq!(employees.collect().await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn x05_the_type_in_a_property() -> Result<(), Error> {
    #[derive(Debug, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "intern_{id:06}",
        entity_type = "INTERN",
        discriminator = "Kind"
    )]
    struct Intern {
        department: String,
        id: u32,
    }
    #[derive(Debug, EntitySet)]
    enum Row {
        Employee(Employee),
        Intern(Intern),
    }
    let (_, client) = client().await;
    let staff = client.set::<Row>("Staff");
    staff.insert(&Intern { department: "Sales".into(), id: 1 }.into()).await?;
    staff.insert(&employee(1).into()).await?;
    let table = client.table::<Intern>();
    let intern = |id| Intern { department: "Sales".into(), id };
    table.insert_or_replace(&intern(2)).await?;
    table.insert_or_merge(&intern(3)).await?;
    table.bulk().insert_all([intern(4)]).await?.into_result()?;
    let mut egt = client.transaction();
    egt.insert(&intern(5))?;
    egt.commit().await?;
    let first = Intern::primary().department("Sales").id(1);
    let stored = table.get(first).await?.unwrap();
    table.replace(&stored).await?;
    for id in 1..=5 {
        let row = client.dynamic("Staff").get("Sales", &format!("intern_{id:06}")).await?.unwrap();
        assert_eq!(row.str("Kind")?, "INTERN", "intern {id}");
        assert_eq!(row.get("EntityType"), None, "intern {id}");
    }
    let row = client.dynamic("Staff").get("Sales", "empid_000001").await?.unwrap();
    assert_eq!(row.str("EntityType")?, "Employee", "the name and the value without settings");
    let rows = staff.query(Keys::partition("Sales")).collect().await?;
    assert!(matches!(&*rows[0], Row::Employee(_)));
    assert!(matches!(&*rows[1], Row::Intern(intern) if intern.id == 1));
    Ok(())
}

mod versions {
    use super::*;

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee"
    )]
    pub struct First {
        pub department: String,
        pub id: u32,
        pub name: String,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        version = 2,
        upgrade_from(First)
    )]
    pub struct Employee {
        pub department: String,
        pub id: u32,
        pub full_name: String,
    }

    impl From<First> for Employee {
        fn from(First { department, id, name }: First) -> Self {
            Self { department, id, full_name: name }
        }
    }
}

#[tokio::test]
async fn x06_the_type_has_a_version() -> Result<(), Error> {
    let (_, client) = client().await;
    let first = versions::First { department: "Sales".into(), id: 1, name: "Don".into() };
    client.table::<versions::First>().insert(&first).await?;
    let staff = client.table::<versions::Employee>();
    let point = || versions::Employee::primary().department("Sales").id(1);
    let don = staff.get(point()).await?.unwrap();
    assert_eq!(don.full_name, "Don");
    staff.replace(&don).await?;
    // Rows of both versions in one range are entities of the new one.
    let second = versions::First { id: 2, name: "Ann".into(), ..first };
    client.table::<versions::First>().insert(&second).await?;
    let both = staff.query(versions::Employee::primary().department("Sales")).collect().await?;
    assert!(both.iter().map(|employee| employee.full_name.as_str()).eq(["Don", "Ann"]));
    let dynamic = client.dynamic("Staff");
    let mut row = dynamic.get("Sales", "empid_000001").await?.unwrap();
    assert_eq!(row.str("EntityType")?, "Employee.v2");
    row.set("EntityType", "Employee.v3");
    dynamic.patch(&row).await?;
    let error = staff.get(point()).await.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!(error.entity_type(), Some("Employee.v3"));
    Ok(())
}

#[tokio::test]
async fn x07_the_type_is_known_from_the_keys() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.table::<Employee>();
    let found = staff.get(Employee::primary().department("Sales").id(223)).await?;
    assert_eq!(*found.unwrap(), employee(223));
    assert_eq!(staff.query(Employee::primary().department("Sales")).collect().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn x08_a_bag_of_properties() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let found = client.dynamic("Staff").get("Sales", "department").await?.unwrap();
    let names: Vec<&str> = found.properties().iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["EntityType", "EmployeeCount"]);
    assert_eq!(found.get("EmployeeCount"), Some(&Value::Int32(1)));
    Ok(())
}

#[tokio::test]
async fn x09_a_range_as_bags() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let text = "(PartitionKey eq 'Sales') and ((RowKey ge 'B') and (RowKey lt 'F'))";
    let parsed = client.dynamic("Staff").query(Filter::parse(text)?);
    assert_eq!(parsed.explain().class, CostClass::Range);
    assert!(parsed.collect().await?.is_empty(), "upper case comes first");
    let rows = client.dynamic("Staff").query(Keys::partition("Sales").rows("b".."f"));
    recorder.clear();
    let rows = rows.collect().await?;
    assert_eq!(recorder.count(), 1);
    let employees: Vec<_> = rows
        .iter()
        .filter(|e| e.get("EntityType").and_then(Value::as_str) == Some("Employee"))
        .collect();
    let [employee] = employees.as_slice() else { panic!("{employees:?}") };
    assert_eq!((employee.partition_key(), employee.row_key()), ("Sales", "empid_000223"));
    assert!(employee.timestamp().is_some() && !employee.etag().to_string().is_empty());
    Ok(())
}

#[tokio::test]
async fn x10_a_resolver_gives_several_types() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let rows = client.dynamic("Staff").query(Keys::partition("Sales").rows("emp".."z"));
    let rows = rows.resolve(|partition_key, row_key, _, properties, _| {
        let mut row = Row::build(partition_key, row_key);
        for (name, value) in properties.iter() {
            row.put(name, value.as_ref());
        }
        let row = row.finish()?;
        match properties.get("EntityType").and_then(Value::as_str) {
            Some("Employee") => Employee::from_row(&row).map(|e| Some(StaffRow::Employee(e))),
            Some(_) => Ok(None),
            None => Review::from_row(&row).map(|review| Some(StaffRow::Review(review))),
        }
    });
    let found: Vec<StaffRow> = rows.collect().await?.into_iter().flatten().collect();
    let sales = || client.dynamic("Staff").query(Keys::partition("Sales"));
    let system = sales().resolve(|partition_key, row_key, timestamp, _, etag| {
        Ok((partition_key.to_owned(), row_key.to_owned(), timestamp, etag.clone()))
    });
    let stored = sales().collect().await?;
    let expected = stored.iter().map(|row| {
        (row.partition_key().to_owned(), row.row_key().to_owned(), row.timestamp(), row.etag())
    });
    assert!(stored.iter().all(|row| row.timestamp().is_some()));
    assert_eq!(system.collect().await?, expected.collect::<Vec<_>>());
    let refused = sales().resolve(|_, row_key, _, _, _| match row_key {
        "empid_000223" => Err(Error::new(ErrorKind::Decode, "no employees here")),
        _ => Ok(()),
    });
    let error = refused.collect().await.unwrap_err();
    assert!(error.is_decode() && error.to_string().contains("empid_000223"), "{error:?}");
    assert_eq!(
        found,
        [
            StaffRow::Employee(employee(223)),
            StaffRow::Review(review(223, 2012)),
            StaffRow::Review(review(223, 2013)),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn x10_a_resolved_entity_is_written_back_under_its_etag() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let staff = client.table::<Employee>();
    let rows = client.dynamic("Staff").query(Keys::partition("Sales").rows("empid_".."empid`"));
    let rows = rows.resolve(|partition_key, row_key, _, properties, etag| {
        let mut row = Row::build(partition_key, row_key);
        for (name, value) in properties.iter() {
            row.put(name, value.as_ref());
        }
        Ok(Stored::under(Employee::from_row(&row.finish()?)?, etag.clone()))
    });
    let found = rows.collect().await?;
    let read = staff.get(employee(223).point()).await?.unwrap();
    assert_eq!(found.iter().map(Stored::etag).collect::<Vec<_>>(), [read.etag()]);

    let mut one = found[0].clone();
    one.email = "don@contoso.com".into();
    let written = staff.replace(&one).await?;
    let by_email = Employee::by_email().department("Sales").email("don@contoso.com");
    let copy = staff.get(by_email).await?.unwrap();
    assert_eq!(copy.id, 223, "the copies follow");
    assert!(
        staff
            .get(Employee::by_email().department("Sales").email(&*employee(223).email))
            .await?
            .is_none()
    );

    // The ETag of the row that was read before: another version is stored now.
    assert!(staff.replace(&found[0]).await.unwrap_err().is_precondition_failed());
    assert!(staff.delete(&found[0]).await.unwrap_err().is_precondition_failed());
    assert_eq!(staff.get(employee(223).point()).await?.unwrap().etag(), written.etag());
    staff.delete(&written).await
}

#[tokio::test]
async fn x11_what_is_resolved_has_all_system_values() -> Result<(), Error> {
    let (_, client) = staffed().await;
    for row in client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await? {
        assert_eq!(row.partition_key(), "Sales");
        assert!(!row.row_key().is_empty());
        assert!(row.timestamp().is_some());
        assert!(row.etag().is_weak());
    }
    Ok(())
}

#[tokio::test]
async fn x12_an_unknown_type_is_an_error_or_a_variant() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let note = DynamicEntity::new("Sales", "note").with("EntityType", "Note").with("Text", "hi");
    client.dynamic("Staff").insert(&note).await?;
    let error = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await;
    let error = error.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!((error.entity_type(), error.keys()), (Some("Note"), Some(("Sales", "note"))));
    let rows = client.set::<AnyRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    assert!(rows.iter().any(|row| **row == AnyRow::Other(note.clone())));
    Ok(())
}

#[tokio::test]
async fn x13_the_caller_matches() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let mut seen = (0, 0, 0);
    for row in client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await? {
        match row.into_inner() {
            StaffRow::Employee(_) => seen.0 += 1,
            StaffRow::Department(_) => seen.1 += 1,
            StaffRow::Review(_) => seen.2 += 1,
        }
    }
    assert_eq!(seen, (1, 1, 2));
    Ok(())
}

#[tokio::test]
async fn x14_deleting_needs_no_type() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let dynamic = client.dynamic("Staff");
    dynamic.delete("Sales", "department", Condition::Any).await?;
    assert!(dynamic.get("Sales", "department").await?.is_none());
    let rows = client.set::<StaffRow>("Staff").query(Keys::partition("Sales")).collect().await?;
    client.bulk().delete_all(rows).await?.into_result()?;
    assert!(dynamic.query(Keys::partition("Sales")).collect().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn x15_updating_needs_no_type() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let dynamic = client.dynamic("Staff");
    let mut found = dynamic.get("Sales", "department").await?.unwrap();
    let count = found.i32("EmployeeCount")?;
    found.set("EmployeeCount", count + 1);
    dynamic.patch(&found).await?;
    assert_eq!(recorder.count(), 2);
    assert!(matches!(&recorder.requests()[1], Request::Apply { .. }));
    assert!(dynamic.patch(&found).await.unwrap_err().is_precondition_failed());
    let found = dynamic.get("Sales", "department").await?.unwrap();
    assert_eq!((found.i32("EmployeeCount")?, found.str("EntityType")?), (2, "Department"));
    let employee = dynamic.get("Sales", "empid_000223").await?.unwrap();
    let error = employee.i32("EmployeeCount").unwrap_err();
    assert_eq!(error.property(), Some("EmployeeCount"));
    assert!(error.to_string().contains("no such property"));
    Ok(())
}
