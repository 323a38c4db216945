//! Tests checks and rebuilds of an entity with local and remote copies.

use entable::{Condition, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "at_{department}_{id:06}"),
    index(ByName, row_key = "name_{name}_{id:06}"),
    list(ByTown, row_key = "town_{town}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    town: String,
    email: String,
}

fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        name: "Jones".into(),
        town: "Rome".into(),
        email: format!("j{id}@contoso.com"),
    }
}

#[tokio::test]
async fn what_is_wrong_in_the_partition_is_mended_whatever_stands_elsewhere() -> Result<(), Error> {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await?;
    for id in 1..=3 {
        staff.insert(&employee(id)).await?;
    }
    client.wait_for_copies().await;
    let email = |id: u32| {
        let path = Employee::by_email().email(format!("j{id}@contoso.com"));
        staff.get(path.department("Sales").id(id))
    };
    for id in 1..=3 {
        assert_eq!(email(id).await?.map(|found| found.id), Some(id));
    }
    let report = staff.check().await?;
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.progress.primaries, 3);
    // Local mismatches are mended, whatever the remote rows are.
    let rows = client.dynamic("Staff");
    rows.delete("Sales", "name_Jones_000002", Condition::Any).await?;
    rows.delete("Sales", "town_Rome", Condition::Any).await?;
    assert_eq!(staff.check().repair().await?, 4);
    assert!(staff.check().await?.is_clean());
    for id in 1..=3 {
        assert_eq!(email(id).await?.map(|found| found.id), Some(id), "no repair touched it");
    }
    assert!(staff.rebuild(Employee::by_name()).await?.is_complete());
    assert!(staff.rebuild(Employee::by_email()).await.is_ok());
    client.worker().drain().await?;
    // A rebuild of an index elsewhere records what workers write: missing, stale, all is mended.
    rows.delete("email_j1@contoso.com", "at_Sales_000001", Condition::Any).await?;
    let mut stale = rows.get("email_j2@contoso.com", "at_Sales_000002").await?.unwrap();
    stale.set("Name", "Somebody");
    rows.replace(&stale).await?;
    assert_eq!(staff.rebuild(Employee::by_email()).await?.written, 3);
    assert!(email(1).await?.is_none(), "workers write it");
    let done = client.worker().drain().await?;
    assert_eq!(done.open, 0);
    for id in 1..=3 {
        assert_eq!(email(id).await?.map(|found| found.name.clone()).as_deref(), Some("Jones"));
    }
    Ok(())
}
