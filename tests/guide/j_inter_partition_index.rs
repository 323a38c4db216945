//! J: copies in other partitions and tables.

use entable::{
    Batch, Operation, Verb,
    backend::{Backend, layer::Request},
    prelude::*,
};

use crate::store::{Store, TestResult, on_both};

/// The guide's employee: `empid_Sales` by id, `email_Sales` by email, and a table of its own by
/// name. No two employees have one email; a copy by name has the id in its key, too.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "empid_{department}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "email_{department}", row_key = "{email:lower}", unique),
    index(
        ByName,
        table = "StaffByName",
        partition_key = "{department}",
        row_key = "{last_name}_{id:06}",
        only(first_name)
    )
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
}

fn employee(id: u32, first_name: &str, email: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: first_name.into(),
        last_name: "Jones".into(),
        age: 34,
        email: email.into(),
    }
}

async fn staff(store: &Store) -> Result<Table<Employee>, Error> {
    let staff = store.client.table::<Employee>();
    staff.create_if_not_exists().await?;
    for one in [
        employee(223, "Jun", "jonesj@contoso.com"),
        employee(150, "Ann", "annj@contoso.com"),
        employee(101, "Don", "alice@contoso.com"),
    ] {
        staff.insert(&one).await?.wait_for_copies().await?;
    }
    store.recorder.clear();
    Ok(staff)
}

#[tokio::test]
async fn j01_copies_are_in_partitions_and_tables_of_their_own() -> TestResult {
    on_both(async |store| {
        staff(&store).await?;
        let emails = store.row_keys("Staff", "email_Sales").await;
        assert_eq!(emails, ["alice@contoso.com", "annj@contoso.com", "jonesj@contoso.com"]);
        let names = store.row_keys("StaffByName", "Sales").await;
        assert_eq!(names, ["Jones_000101", "Jones_000150", "Jones_000223"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn j03_j04_the_partition_key_says_which_index_it_is() -> TestResult {
    on_both(async |store| {
        let staff = staff(&store).await?;
        let path = Employee::primary().department("Sales").id(223);
        let filter = path.keys().filter().to_string();
        assert_eq!(filter, "(PartitionKey eq 'empid_Sales') and (RowKey eq '000223')");
        assert_eq!(staff.get(path).await?.unwrap().first_name, "Jun");
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn j05_an_email_is_one_read_of_its_partition() -> TestResult {
    on_both(async |store| {
        let staff = staff(&store).await?;
        let path = || Employee::by_email().department("Sales").email("jonesj@contoso.com");
        let filter = path().keys().filter().to_string();
        assert_eq!(filter, "(PartitionKey eq 'email_Sales') and (RowKey eq 'jonesj@contoso.com')");
        let found = staff.get(path()).await?.unwrap();
        assert_eq!((found.id, &*found.first_name), (223, "Jun"));
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn j06_j07_ranges_come_in_the_order_of_each_index() -> TestResult {
    on_both(async |store| {
        let staff = staff(&store).await?;
        let by_id = staff.query(Employee::primary().department("Sales").id_range(100..=199));
        assert_eq!(
            by_id.explain().filter,
            "(PartitionKey eq 'empid_Sales') and (RowKey ge '000100') and (RowKey le '000199')"
        );
        let ids: Vec<u32> = by_id.collect().await?.iter().map(|one| one.id).collect();
        assert_eq!(ids, [101, 150]);
        let by_email = staff.query(Employee::by_email().department("Sales").email_prefix("a"));
        assert_eq!(
            by_email.explain().filter,
            "(PartitionKey eq 'email_Sales') and (RowKey ge 'a') and (RowKey lt 'b')"
        );
        let emails: Vec<String> =
            by_email.collect().await?.into_iter().map(|one| one.email.clone()).collect();
        assert_eq!(emails, ["alice@contoso.com", "annj@contoso.com"]);
        Ok(())
    })
    .await
}

/// Test value 13: both rows, the four filters in the tests above, and no transaction with both.
#[tokio::test]
async fn j08_an_email_has_one_row_which_no_transaction_shares_with_the_entity() -> TestResult {
    on_both(async |store| {
        let staff = store.client.table::<Employee>();
        staff.create_if_not_exists().await?;
        store.recorder.clear();
        let jun = employee(223, "Jun", "jonesj@contoso.com");
        let stored = staff.insert(&jun).await?;
        assert_eq!((stored.partition_key(), stored.row_key()), ("empid_Sales", "000223"));
        stored.wait_for_copies().await?;
        let rows = store.client.dynamic("Staff");
        for (partition_key, row_key) in
            [("empid_Sales", "000223"), ("email_Sales", "jonesj@contoso.com")]
        {
            let row = rows.get(partition_key, row_key).await?.unwrap();
            assert_eq!(row.str("FirstName")?, "Jun");
        }
        for request in store.requests() {
            let Request::Apply { partition_key, operations, .. } = request else { continue };
            let has = |of: &str| operations.iter().any(|(_, key)| key == of);
            assert!(!has("000223") || partition_key == "empid_Sales");
            assert!(!has("jonesj@contoso.com") || partition_key == "email_Sales");
        }
        let taken = staff.insert(&employee(7, "Jan", "JonesJ@contoso.com")).await.unwrap_err();
        assert!(taken.is_unique_violation());
        assert_eq!(taken.holder(), Some(("empid_Sales", "000223")));
        assert!(staff.get(Employee::primary().department("Sales").id(7)).await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn j08_copies_follow_by_work_that_is_recorded_and_bears_repeating() -> TestResult {
    on_both(async |store| {
        let staff = staff(&store).await?;
        staff.insert(&employee(300, "Eve", "eve@contoso.com")).await?.wait_for_copies().await?;
        // No transaction spans two partitions; the one of the change records what has to follow.
        let writes = store.requests();
        for request in &writes {
            let Request::Apply { partition_key, operations, .. } = request else { continue };
            let primary = operations.iter().any(|(_, key)| key == "000300");
            assert!(!primary || (partition_key == "empid_Sales" && operations.len() > 1));
            let is_copy = ["email_Sales", "Sales"].contains(&partition_key.as_str());
            assert!(!is_copy || operations.len() == 1);
        }
        let recorded = |(verb, key): &(Verb, String)| *verb == Verb::Insert && key == "~e2_000300";
        assert!(writes.iter().any(|request| matches!(request, Request::Apply { operations, .. } if operations.iter().any(recorded))));
        // The record comes back, as after a crash before it was deleted: its repetition changes nothing.
        let batches = store.batches();
        let mut operations = batches.iter().flat_map(Batch::operations);
        let record = operations.find(|operation| operation.row().row_key() == "~e2_000300");
        let record = Operation::insert(record.ok_or("a record")?.row().clone());
        let copies = async || {
            let emails = store.rows("Staff", "email_Sales").await;
            format!("{emails:?} {:?}", store.rows("StaffByName", "Sales").await)
        };
        let before = copies().await;
        assert!(before.contains("eve@contoso.com"));
        store.fault.apply(&Batch::single("Staff", record)?).await?;
        store.client.worker().drain().await?;
        assert_eq!(copies().await, before);
        assert!(!store.row_keys("Staff", "empid_Sales").await.contains(&"~e2_000300".to_owned()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn j09_a_partial_copy_holds_what_is_asked_for() -> TestResult {
    #[derive(Debug, Projection)]
    #[table(of = Employee)]
    struct FirstName {
        first_name: String,
    }
    on_both(async |store| {
        let staff = staff(&store).await?;
        let path = Employee::by_name().department("Sales").last_name("Jones");
        let found = staff.query(path).select::<FirstName>().collect().await?;
        let names: Vec<&str> = found.iter().map(|one| one.first_name.as_str()).collect();
        assert_eq!(names, ["Don", "Ann", "Jun"]);
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}
