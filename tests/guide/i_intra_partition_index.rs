//! I: copies in the partition of the entity.

use entable::{
    ErrorKind, Verb,
    backend::layer::{InjectedFault, Request, RequestKind},
    prelude::*,
};

use crate::{
    model::{Employee, SampleEmployee, employee},
    store::{Store, TestResult, on_both},
};

fn jones() -> Employee {
    Employee { email: "jonesj@contoso.com".into(), ..employee(223, "Jones") }
}

/// The operations of the writes since the last look, in the order of their keys.
fn operations(store: &Store) -> Vec<Vec<(Verb, String)>> {
    let writes = store.requests().into_iter().filter_map(|request| match request {
        Request::Apply { mut operations, .. } => {
            operations.sort_by(|a, b| a.1.cmp(&b.1));
            Some(operations)
        }
        _ => None,
    });
    writes.collect()
}

/// An employee with one copy, without a list.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", except(age))
)]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
    email: String,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Clerk)]
struct ClerkName {
    id: u32,
    last_name: String,
    email: String,
}

fn clerk(id: u32, email: &str) -> Clerk {
    Clerk {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        age: 34,
        email: email.into(),
    }
}

#[tokio::test]
async fn i01_copies_are_written_with_the_entity_in_one_transaction() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        let rows = |verb| vec![(verb, "email_a@x".to_owned()), (verb, "empid_000001".to_owned())];
        let mut one = staff.insert(&clerk(1, "a@x")).await?;
        assert_eq!(operations(&store), [rows(Verb::Insert)]);
        one.last_name = "Smith".into();
        let one = staff.replace(&one).await?;
        let writes = operations(&store);
        assert_eq!((writes.len(), writes[0].len()), (1, 2), "{writes:?}");
        staff.delete(&one).await?;
        assert_eq!(operations(&store), [rows(Verb::Delete)]);
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i02_a_partition_scan_becomes_a_point() -> TestResult {
    on_both(async |store| {
        let before = store.table::<SampleEmployee>().await;
        let scan = before.query(SampleEmployee::primary().department("Sales"));
        let scan = scan.filter(SampleEmployee::EMAIL.eq("kenk@contoso.com"));
        assert_eq!(scan.explain().class, CostClass::PartitionScan);
        let after = store.table::<Employee>().await;
        let point = Employee::by_email().department("Sales").email("kenk@contoso.com");
        assert_eq!(after.query(point).explain().class, CostClass::Point);
        Ok(())
    })
    .await
}

/// The literal texts before the first part of the RowKeys of employees and of their copies by e-mail.
const PREFIXES: [&str; 2] = [
    Employee::SCHEMA.families[0].row.literal_prefix(),
    Employee::SCHEMA.families[1].row.literal_prefix(),
];

#[test]
fn i03_prefixes_select_one_employee_or_a_range() {
    assert_eq!(PREFIXES, ["empid_", "email_"]);
    // A prefix and a PartitionKey are a path without a type, too.
    let untyped = PREFIXES.map(|prefix| Keys::partition("Sales").prefix(prefix));
    let typed = [
        Employee::primary().department("Sales").keys(),
        Employee::by_email().department("Sales").keys(),
    ];
    assert_eq!(untyped.map(|keys| keys.filter()), typed.map(|keys| keys.filter()));
    let row_key = |keys: Keys| keys.filter().to_string();
    let one = Employee::primary().department("Sales").id(223).keys();
    assert!(row_key(one.clone()).contains("'empid_000223'"));
    let all = row_key(Employee::primary().department("Sales").keys());
    assert!(all.contains("RowKey ge 'empid_'") && all.contains("RowKey lt 'empid`'"), "{all}");
    let all = row_key(Employee::by_email().department("Sales").keys());
    assert!(all.contains("RowKey ge 'email_'") && all.contains("RowKey lt 'email`'"), "{all}");
}

#[tokio::test]
async fn i04_by_employee_id() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&jones()).await?;
        let query = staff.query(Employee::primary().department("Sales").id(223));
        assert_eq!(
            query.explain().filter,
            "(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')"
        );
        assert_eq!(*query.first().await?.unwrap(), jones());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i05_by_email() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&jones()).await?;
        let point = Employee::by_email().department("Sales").email("jonesj@contoso.com");
        let query = staff.query(point);
        assert_eq!(
            query.explain().filter,
            "(PartitionKey eq 'Sales') and (RowKey eq 'email_jonesj@contoso.com')"
        );
        assert_eq!(*query.first().await?.unwrap(), jones());
        let raw = store.client.dynamic("Staff");
        let filter = "(PartitionKey eq 'Sales') and (RowKey eq 'email_jonesj@contoso.com')";
        assert_eq!(raw.query(Filter::parse(filter)?).collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i06_a_range_of_ids() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let rows = (50..250).rev().map(|id| employee(id, "Jones"));
        staff.bulk().insert_all(rows).await?.into_result()?;
        let range = staff.query(Employee::primary().department("Sales").id_range(100..=199));
        assert_eq!(
            range.explain().filter,
            "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')"
        );
        let ids: Vec<u32> = range.collect().await?.iter().map(|e| e.id).collect();
        assert_eq!(ids, (100..200).collect::<Vec<u32>>());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i07_emails_by_their_first_letter() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        for (id, email) in [(1, "Ann@x"), (2, "bob@x"), (3, "abe@x"), (4, "zoe@x")] {
            staff.insert(&Employee { email: email.into(), ..employee(id, "Jones") }).await?;
        }
        let query = staff.query(Employee::by_email().department("Sales").email_prefix("a"));
        assert_eq!(
            query.explain().filter,
            "(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')"
        );
        let found = query.collect().await?;
        let emails: Vec<&str> = found.iter().map(|e| e.email.as_str()).collect();
        assert_eq!(emails, ["abe@x", "Ann@x"], "sorted by e-mail, as it was written");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i10_copies_stay_in_one_transaction() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let mut jones = staff.insert(&jones()).await?;
        assert_eq!(
            store.row_keys("Staff", "Sales").await[..2],
            ["email_jonesj@contoso.com".to_owned(), "empid_000223".to_owned()]
        );
        store.requests();
        jones.age = 40;
        staff.replace(&jones).await?;
        let writes = operations(&store);
        let keys: Vec<&str> = writes[0].iter().map(|(_, key)| key.as_str()).collect();
        assert_eq!(writes.len(), 1);
        assert_eq!(keys, ["email_jonesj@contoso.com", "empid_000223"], "the list does not change");
        let copy = Employee::by_email().department("Sales").email("jonesj@contoso.com");
        assert_eq!(staff.get(copy).await?.unwrap().age, 40);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i11_a_key_that_is_taken_names_its_index() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&jones()).await?;
        let before = store.row_keys("Staff", "Sales").await;
        let twin = Employee { email: "JonesJ@contoso.com".into(), ..employee(9, "Smith") };
        let error = staff.insert(&twin).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!(error.index(), Some("ByEmail"));
        assert_eq!(error.keys(), Some(("Sales", "email_jonesj@contoso.com")));
        assert_eq!(error.holder(), Some(("Sales", "empid_000223")), "{error}");
        let same_id = Employee { email: "other@x".into(), ..jones() };
        assert!(staff.insert(&same_id).await.unwrap_err().is_conflict(), "its own key");
        assert_eq!(store.row_keys("Staff", "Sales").await, before, "nothing was written");
        Ok(())
    })
    .await
}

#[test]
fn i12_numbers_are_padded() -> Result<(), Error> {
    assert_eq!(jones().to_row()?.row_key(), "empid_000223");
    let point = Employee::primary().department("Sales").id(7);
    assert_eq!(point.row_key(), "empid_000007");
    Ok(())
}

#[tokio::test]
async fn i13_a_copy_may_leave_fields_out() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(223, "jonesj@contoso.com")).await?;
        let raw = store.client.dynamic("Staff");
        let copy = raw.get("Sales", "email_jonesj@contoso.com").await?.unwrap();
        assert!(copy.get("Age").is_none());
        assert_eq!(copy.str("LastName")?, "Jones");
        let primary = raw.get("Sales", "empid_000223").await?.unwrap();
        assert_eq!(primary.i32("Age")?, 34);
        let point = Clerk::by_email().department("Sales").email("jonesj@contoso.com");
        let name = staff.get_as::<ClerkName>(point).await?.unwrap();
        assert_eq!((name.id, name.last_name.as_str()), (223, "Jones"));
        let path = Clerk::by_email().department("Sales");
        let names = staff.query(path).select::<ClerkName>().collect().await?;
        assert_eq!(names.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i14_a_copy_is_full_unless_told_and_read_at_once() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&jones()).await?;
        store.requests();
        let point = Employee::by_email().department("Sales").email("jonesj@contoso.com");
        let read = staff.get(point).await?.unwrap();
        assert_eq!(*read, jones(), "every field, the id too");
        assert_eq!(read.index(), Some("ByEmail"));
        assert_eq!(store.count(), 1, "located and fetched in one request");
        Ok(())
    })
    .await
}

async fn with_new_email(staff: &Table<Clerk>) -> Result<Stored<Clerk>, Error> {
    let mut one = staff.get(Clerk::primary().department("Sales").id(1)).await?.unwrap();
    one.email = "new@x".into();
    Ok(one)
}

#[tokio::test]
async fn i16_a_changed_email_moves_its_copy() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(1, "old@x")).await?;
        staff.insert(&clerk(2, "taken@x")).await?;
        let before = store.rows("Staff", "Sales").await;
        let same = async |store: &Store| {
            let now = store.rows("Staff", "Sales").await;
            let etags = |rows: &[Stored<DynamicEntity>]| {
                rows.iter()
                    .map(|row| (Stored::row_key(row).to_owned(), row.etag()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(etags(&now), etags(&before));
        };
        // A failure leaves all three rows as they were.
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        store.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(lost));
        assert!(staff.replace(&with_new_email(&staff).await?).await.unwrap_err().is_backend());
        same(&store).await;
        let mut taken = with_new_email(&staff).await?;
        taken.email = "taken@x".into();
        assert!(staff.replace(&taken).await.unwrap_err().is_unique_violation());
        same(&store).await;

        let one = with_new_email(&staff).await?;
        store.requests();
        staff.replace(&one).await?;
        let expected = [
            (Verb::Insert, "email_new@x".to_owned()),
            (Verb::Delete, "email_old@x".to_owned()),
            (Verb::Replace, "empid_000001".to_owned()),
        ];
        assert_eq!(operations(&store), [expected.to_vec()], "one transaction, and no read");
        let keys = store.row_keys("Staff", "Sales").await;
        assert_eq!(keys, ["email_new@x", "email_taken@x", "empid_000001", "empid_000002"]);

        // Every other verb keeps the copy as well.
        let point = || Clerk::primary().department("Sales").id(1);
        staff.patch_at(point(), Clerk::patch().email("patched@x")).await?;
        assert!(store.row_keys("Staff", "Sales").await.contains(&"email_patched@x".to_owned()));
        staff.insert_or_replace(&clerk(1, "replaced@x")).await?;
        staff
            .update(point(), |e| {
                e.email = "updated@x".into();
                Ok(())
            })
            .await?;
        let keys = store.row_keys("Staff", "Sales").await;
        assert_eq!(keys, ["email_taken@x", "email_updated@x", "empid_000001", "empid_000002"]);
        Ok(())
    })
    .await
}
