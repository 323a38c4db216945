//! Tests the design guide's values 31 to 35: keys, types and messages as they are given there.

use entable::prelude::*;

/// The keys of the guide: the type before them, in upper case.
mod keyed {
    use entable::{EntitySet, TableEntity};

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
        row_key = "DEPARTMENT_{name}",
        discriminator = row_key
    )]
    pub struct Department {
        pub department: String,
        pub name: String,
        pub employee_count: i32,
    }

    #[derive(Debug, Clone, PartialEq, EntitySet)]
    pub enum Row {
        Employee(Employee),
        Department(Department),
    }
}

async fn staff() -> Result<Client, Error> {
    let client = Client::memory();
    client.create_table("Staff").await?;
    Ok(client)
}

fn named(row_key: &str, entity_type: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", row_key).with("EntityType", entity_type)
}

#[tokio::test]
async fn value_31_a_range_of_bags_holds_every_type() -> Result<(), Error> {
    let client = staff().await?;
    let staff = client.dynamic("Staff");
    for (row_key, entity_type) in [
        ("A", "Employee"),
        ("Brown", "Employee"),
        ("DEPARTMENT_SALES", "Department"),
        ("Department", "Department"),
        ("EMPLOYEE_000123", "Employee"),
        ("F", "Employee"),
    ] {
        staff.insert(&named(row_key, entity_type).with("Age", 34)).await?;
    }
    let text = "(PartitionKey eq 'Sales') and ((RowKey ge 'B') and (RowKey lt 'F'))";
    let rows = staff.query(Filter::parse(text)?).collect().await?;
    let keys: Vec<&str> = rows.iter().map(Stored::row_key).collect();
    assert_eq!(keys, ["Brown", "DEPARTMENT_SALES", "Department", "EMPLOYEE_000123"]);
    let is_employee = |row: &&Stored<DynamicEntity>| {
        row.get("EntityType").and_then(Value::as_str) == Some("Employee")
    };
    assert_eq!(rows.iter().filter(is_employee).count(), 2);
    let built = Filter::eq("PartitionKey", "Sales")
        & (Filter::ge("RowKey", "B") & Filter::lt("RowKey", "F"));
    assert_eq!(staff.query(built).collect().await?.len(), 4);
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Resolved {
    Employee { keys: (String, String), age: i32 },
    Department { keys: (String, String), employee_count: i32 },
}

#[tokio::test]
async fn value_32_a_resolver_throws_for_what_it_does_not_know() -> Result<(), Error> {
    let client = staff().await?;
    let staff = client.dynamic("Staff");
    staff.insert(&named("1", "Employee").with("Age", 34)).await?;
    staff.insert(&named("2", "Department").with("EmployeeCount", 153)).await?;
    staff.insert(&named("3", "Invoice")).await?;
    staff.insert(&DynamicEntity::new("Sales", "4").with("Age", 34)).await?;
    let rows = staff.query(Keys::partition("Sales")).resolve(|pk, rk, timestamp, props, etag| {
        assert!(timestamp.is_some() && etag.is_weak());
        let keys = (pk.to_owned(), rk.to_owned());
        let count = |name: &str| props.get(name).and_then(Value::as_i32).unwrap_or_default();
        match props.get("EntityType").and_then(Value::as_str) {
            Some("Employee") => Ok(Resolved::Employee { keys, age: count("Age") }),
            Some("Department") => {
                Ok(Resolved::Department { keys, employee_count: count("EmployeeCount") })
            }
            _ => Err(Error::new(ErrorKind::UnrecognizedEntity, "Unrecognized entity")),
        }
    });
    let rows = rows.results().collect().await?;
    let keys = |row_key: &str| ("Sales".to_owned(), row_key.to_owned());
    assert_eq!(*rows[0].as_ref().unwrap(), Resolved::Employee { keys: keys("1"), age: 34 });
    assert_eq!(
        *rows[1].as_ref().unwrap(),
        Resolved::Department { keys: keys("2"), employee_count: 153 }
    );
    for (row, row_key) in rows.iter().skip(2).zip(["3", "4"]) {
        let error = row.as_ref().unwrap_err();
        assert!(error.is_unrecognized_entity());
        assert_eq!(error.message(), "Unrecognized entity");
        assert_eq!(error.keys(), Some(("Sales", row_key)));
    }
    assert_eq!(rows.len(), 4);
    Ok(())
}

mod versions {
    use entable::TableEntity;

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
async fn value_33_two_versions_are_read_and_a_ninth_is_an_error() -> Result<(), Error> {
    let client = staff().await?;
    let staff = client.dynamic("Staff");
    staff.insert(&named("empid_000001", "Employee.v1").with("Name", "Don")).await?;
    staff.insert(&named("empid_000002", "Employee.v2").with("FullName", "Jun")).await?;
    let employees = client.table::<versions::Employee>();
    let names = |rows: Vec<Stored<versions::Employee>>| {
        rows.iter().map(|row| row.full_name.clone()).collect::<Vec<_>>()
    };
    let sales = employees.query(versions::Employee::primary().department("Sales"));
    assert_eq!(names(sales.collect().await?), ["Don", "Jun"]);
    let scan = employees.query(versions::Employee::scan());
    assert_eq!(names(scan.collect().await?), ["Don", "Jun"]);
    staff.insert(&named("empid_000003", "Employee.v9")).await?;
    for query in [sales, scan] {
        let error = query.collect().await.unwrap_err();
        assert!(error.is_unrecognized_entity());
        assert_eq!(error.entity_type(), Some("Employee.v9"));
        assert_eq!(error.keys(), Some(("Sales", "empid_000003")));
    }
    Ok(())
}

#[tokio::test]
async fn value_34_a_count_without_a_type_is_merged() -> Result<(), Error> {
    let client = staff().await?;
    let staff = client.dynamic("Staff");
    let department = named("Department", "Department").with("DepartmentName", "Sales");
    staff.insert(&department.clone().with("EmployeeCount", 153)).await?;
    staff.insert(&named("00010", "Employee").with("Age", 23)).await?;
    let count_up = |row: &mut DynamicEntity| -> Result<(), BoxError> {
        let count = row.get("EmployeeCount").and_then(Value::as_i32);
        let count = count.ok_or("Invalid entity, EmployeeCount property not found.")?;
        row.set("EmployeeCount", count + 1);
        Ok(())
    };
    staff.update("Sales", "Department", count_up).await?;
    let found = staff.get("Sales", "Department").await?.unwrap();
    assert_eq!(*found, department.with("EmployeeCount", 154));
    let error = staff.update("Sales", "00010", count_up).await.unwrap_err();
    assert!(error.message().contains("Invalid entity, EmployeeCount property not found."));
    Ok(())
}

#[tokio::test]
async fn value_35_the_type_before_the_key_keeps_types_apart() -> Result<(), Error> {
    let client = staff().await?;
    let rows = client.set::<keyed::Row>("Staff");
    let department = || "Sales".to_owned();
    let employee = keyed::Employee { department: department(), id: 123, age: 34 };
    let sales =
        keyed::Department { department: department(), name: "SALES".into(), employee_count: 153 };
    rows.insert(&employee.clone().into()).await?;
    rows.insert(&sales.clone().into()).await?;
    let found = rows.query(Keys::partition("Sales")).collect().await?;
    let keys: Vec<&str> = found.iter().map(Stored::row_key).collect();
    assert_eq!(keys, ["DEPARTMENT_SALES", "EMPLOYEE_000123"]);
    assert_eq!(*found[0], keyed::Row::Department(sales));
    let one = rows.query(Keys::partition("Sales").prefix("EMPLOYEE_")).collect().await?;
    assert_eq!(one.len(), 1);
    assert_eq!(*one[0], keyed::Row::Employee(employee));
    Ok(())
}
