//! Tests rows that this library did not write.

use entable::prelude::*;

use crate::fixture::*;

fn row(row_key: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", row_key)
}

/// Rows beside the known ones, with what the strict set says of each.
fn foreign() -> Vec<(DynamicEntity, &'static str)> {
    vec![
        (
            row("a"),
            "unrecognized entity: the row does not say its type, and its keys fit no member of `StaffRow` (table \
             `Staff`, PartitionKey `Sales`, RowKey `a`)",
        ),
        (
            row("b").with("EntityType", ""),
            "unrecognized entity: `` is not a member of `StaffRow` (table `Staff`, PartitionKey `Sales`, RowKey `b`, \
             EntityType ``, property `EntityType`)",
        ),
        (
            row("c").with("EntityType", 7),
            "unrecognized entity: expected the type's name, found Edm.Int32 (table `Staff`, PartitionKey `Sales`, RowKey `c`, property `EntityType`)",
        ),
        (
            row("d").with("EntityType", "Employee.v2"),
            "unrecognized entity: found version 2 of `Employee`, but this program knows version 1 (table `Staff`, \
             PartitionKey `Sales`, RowKey `d`, EntityType `Employee.v2`, property `EntityType`)",
        ),
        (
            row("e").with("EntityType", "Intern"),
            "unrecognized entity: `Intern` is not a member of `StaffRow` (table `Staff`, PartitionKey `Sales`, RowKey \
             `e`, EntityType `Intern`, property `EntityType`)",
        ),
        (
            // A copy's type has the entity's name before the `#`.
            row("f").with("EntityType", "#ByEmail"),
            "unrecognized entity: `#ByEmail` is not a member of `StaffRow` (table `Staff`, PartitionKey `Sales`, \
             RowKey `f`, EntityType `#ByEmail`, property `EntityType`)",
        ),
        (
            row("empid_000001").with("EntityType", "Employee").with("LastName", 7),
            "expected Edm.String, found Edm.Int32 (table `Staff`, PartitionKey `Sales`, RowKey `empid_000001`, EntityType `Employee`, property `LastName`)",
        ),
        (
            row("empid_x").with("EntityType", "Employee"),
            "key `empid_x` does not fit the template \"empid_{id:06}\" (table `Staff`, PartitionKey `Sales`, RowKey `empid_x`, EntityType `Employee`, property `RowKey`)",
        ),
        (
            row("review_000001_2012").with("Rating", "good"),
            "expected Edm.Int32, found Edm.String (table `Staff`, PartitionKey `Sales`, RowKey `review_000001_2012`, EntityType `Review`, property `Rating`)",
        ),
    ]
}

#[tokio::test]
async fn a_strict_set_names_what_it_does_not_know() -> Result<(), Error> {
    for (row, message) in foreign() {
        let (_, client) = staffed().await;
        client.dynamic("Staff").insert(&row).await?;
        let staff = client.set::<StaffRow>("Staff");
        let whole = staff.query(Keys::partition("Sales")).collect().await.unwrap_err();
        assert_eq!(whole.to_string(), message);
        let alone = staff.get(("Sales", row.row_key())).await.unwrap_err();
        assert_eq!(alone.to_string(), message);
        assert_eq!(alone.is_decode(), !message.starts_with("unrecognized"));
        assert_eq!(alone.is_unrecognized_entity(), message.starts_with("unrecognized"));
    }
    Ok(())
}

#[tokio::test]
async fn a_set_with_a_place_for_them_delivers_them_whole() -> Result<(), Error> {
    for (row, _) in foreign() {
        let (_, client) = staffed().await;
        client.dynamic("Staff").insert(&row).await?;
        let staff = client.set::<AnyRow>("Staff");
        let found = staff.get(("Sales", row.row_key())).await?.unwrap();
        assert_eq!(*found, AnyRow::Other(row.clone()));
        let all = staff.query(Keys::partition("Sales")).collect().await?;
        assert_eq!(all.len(), 5);
    }
    Ok(())
}

#[tokio::test]
async fn typed_reads_name_the_type_that_they_met() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let wrong = row("empid_000002").with("EntityType", "Department").with("EmployeeCount", 1);
    client.dynamic("Staff").insert(&wrong).await?;
    let staff = client.table::<Employee>();
    let error = staff.get(Employee::primary().department("Sales").id(2)).await.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!(error.entity_type(), Some("Department"));
    assert_eq!(error.keys(), Some(("Sales", "empid_000002")));
    Ok(())
}

#[tokio::test]
async fn framework_rows_and_copies_are_for_nobody_who_does_not_ask() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let dynamic = client.dynamic("Staff");
    dynamic
        .insert(&row("~e1_intent").with_framework_names().with("EntityType", "entable.intent"))
        .await?;
    dynamic.insert(&row("x").with("EntityType", "Intern#ByEmail")).await?;
    let any = client.set::<AnyRow>("Staff");
    let rows = any.query(Keys::partition("Sales"));
    let count = |rows: Vec<Stored<AnyRow>>| rows.len();
    assert_eq!(count(rows.collect().await?), 4);
    let with_copies = rows.include_copies().collect().await?;
    let copies: Vec<(&str, Option<&str>)> =
        with_copies.iter().map(|row| (row.row_key(), row.index())).collect();
    assert_eq!(
        copies,
        [
            ("department", None),
            ("email_jones223@contoso.com", Some("ByEmail")),
            ("empid_000223", None),
            ("review_000223_2012", None),
            ("review_000223_2013", None),
            ("x", None),
        ]
    );
    assert_eq!(*with_copies[1], AnyRow::Employee(employee(223)));
    Ok(())
}
