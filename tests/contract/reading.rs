//! Tests access paths, queries, pages and cursors.

use entable::prelude::*;

use crate::{
    declaring::{Address, Contact, Customer, Department, Employee, Review, employee},
    store::{TestResult, on_both},
};

async fn filled(client: &Client) -> Result<Table<Employee>, Error> {
    let staff: Table<Employee> = client.table();
    staff.create_if_not_exists().await?;
    let names = ["Jones", "Smith", "Abel"];
    let rows = (1..=9).map(|id| {
        let name = names[id as usize % 3];
        Employee { age: 20 + id as i32 * 3, ..employee(id, name) }
    });
    staff.bulk().insert_all(rows).await?.into_result()?;
    Ok(staff)
}

#[test]
fn a_path_says_what_it_costs_by_its_type() {
    let _: Point<Employee> = Employee::primary().department("Sales").id(223);
    let range: Range<Employee> = Employee::primary().department("Sales").id_range(100..=199);
    let _: Scan<Employee> = Employee::scan();
    assert_eq!(
        range.keys().filter().to_string(),
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')"
    );
    let by_email: Range<Employee> = Employee::by_email().department("Sales").email_prefix("a");
    assert_eq!(
        by_email.keys().filter().to_string(),
        "(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')"
    );
    let step = Employee::primary().department("Sales");
    let _: Partition<Employee> = step.clone().into();
    let _: Range<Employee> = step.clone().into();
    let _: Keys = step.keys();
    // Full copies are whole entities too: their ranges have the type of the primary's.
    let copies = Employee::by_email().department("Sales");
    let _: Partition<Employee> = copies.clone().into();
    let _: Range<Employee> = copies.into();
    let set = Keys::partition("Sales").prefix("empid_000123");
    assert_eq!(
        set.filter().to_string(),
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')"
    );
}

#[tokio::test]
async fn points_are_read() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        let point = Employee::primary().department("Sales").id(3);
        let don: Option<Stored<Employee>> = staff.get(point.clone()).await?;
        let don = don.unwrap();
        assert_eq!((don.id, don.department.as_str()), (3, "Sales"));
        assert_eq!((don.partition_key(), don.row_key()), ("Sales", "empid_000003"));
        assert!(don.timestamp().is_some() && !don.etag().to_string().is_empty());
        assert_eq!(don.status(), 200);
        let inner: Employee = don.into_inner();
        assert_eq!(inner.id, 3);
        let contact: Option<Stored<Contact>> = staff.get_as::<Contact>(point.clone()).await?;
        assert_eq!(contact.unwrap().first_name, "Don");
        let email = Employee::by_email().department("Sales").email("jones3@contoso.com");
        assert_eq!(staff.get(email.clone()).await?.unwrap().id, 3);
        assert_eq!(staff.get_as::<Contact>(email).await?.unwrap().email, "jones3@contoso.com");
        let (p1, p2) = (point, Employee::primary().department("Sales").id(1));
        store.recorder.clear();
        let many = staff.get_many([p1, p2]).await?;
        let ids: Vec<_> = many.into_iter().flatten().map(|e| e.id).collect();
        assert_eq!(ids, [3, 1]);
        assert!(store.requests().iter().all(|request| request.is_read()));
        let missing = Employee::primary().department("Sales").id(99);
        assert!(staff.get(missing).await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_list_gives_ids_for_one_request() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        store.recorder.clear();
        let list = Employee::by_last_name().department("Sales").last_name("Jones");
        let ids = staff.keys(list.clone()).await?;
        assert_eq!((ids.len(), store.count()), (3, 1));
        let found = staff.query(list).collect().await?;
        assert_eq!((found.len(), store.count()), (3, 4));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_query_is_built_explained_and_finished() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        let path = Employee::primary().department("Sales");
        let q = staff
            .query(path)
            .filter(Employee::AGE.ge(30) & !Employee::LAST_NAME.eq("Jones"))
            .select::<Contact>()
            .take(120)
            .page_size(50);
        let explain = q.explain();
        assert_eq!(explain.class, CostClass::Range, "{explain}");
        assert_eq!(explain.table, "Staff");
        assert_eq!(
            explain.filter,
            "(PartitionKey eq 'Sales') and (RowKey ge 'empid_') and (RowKey lt 'empid`') and (Age ge 30) and (not (LastName eq 'Jones'))"
        );
        assert!(explain.select.contains(&"Email".to_owned()), "{explain}");
        assert_eq!(explain.top, Some(50));
        assert_eq!(explain.estimated_requests, 3);
        assert!(explain.to_string().starts_with("Range of Staff"));
        let all: Vec<Stored<Contact>> = q.stream().try_collect().await?;
        let collected = q.collect().await?;
        assert_eq!((all.len(), collected.len()), (4, 4));
        let first: Option<Stored<Contact>> = q.first().await?;
        assert_eq!(first.unwrap().email, "smith4@contoso.com");
        let page: Page<Stored<Contact>> = q.page(None).await?;
        assert_eq!((page.items.len(), page.next.is_none()), (4, true));
        let kept: Box<dyn std::any::Any + Send> = Box::new(q.clone());
        assert!(kept.is::<Query<Employee, Stored<Contact>>>());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_cursor_survives_text_and_serde() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        let q = staff.query(Employee::primary().department("Sales")).page_size(4);
        let page = q.page(None).await?;
        assert_eq!(page.items.iter().map(|e| e.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let cursor = page.next.unwrap();
        let text = cursor.to_string();
        let json = serde_json::to_string(&cursor)?;
        let parsed: Cursor = text.parse()?;
        let restored: Cursor = serde_json::from_str(&json)?;
        assert_eq!((&parsed, &restored), (&cursor, &cursor));
        let page = q.page(Some(restored)).await?;
        assert_eq!(page.items.iter().map(|e| e.id).collect::<Vec<_>>(), [5, 6, 7, 8]);
        let other = staff.query(Employee::by_email().department("Sales")).page_size(4);
        assert!(other.page(Some(parsed)).await.unwrap_err().is_invalid_cursor());
        assert!("nonsense".parse::<Cursor>().unwrap_err().is_invalid_cursor());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn conditions_are_joined_with_operators() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        let count = async |condition| {
            let found = staff.query(Employee::primary().department("Sales")).filter(condition);
            Ok::<_, Error>(found.collect().await?.len())
        };
        assert_eq!(
            count(Employee::LAST_NAME.eq("Jones") | Employee::LAST_NAME.eq("Abel")).await?,
            6
        );
        assert_eq!(count(Employee::LAST_NAME.eq("Jones") & Employee::AGE.lt(30)).await?, 1);
        assert_eq!(count(!Employee::LAST_NAME.eq("Jones")).await?, 6);
        assert_eq!(count(Employee::ID.gt(7)).await?, 2);
        let typed = Employee::PARTITION_KEY.eq("Sales")
            & Employee::ROW_KEY.ge("empid_000008")
            & Employee::ROW_KEY.lt("f");
        let scan = staff.query(Employee::scan()).filter(typed);
        assert_eq!(scan.collect().await?.len(), 2);
        let filter = Customer::ADDRESS.at(Address::CITY).eq("Berlin").into_filter()?;
        assert_eq!(filter.to_string(), "homeCity eq 'Berlin'");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn untyped_tables_are_queried_by_text_and_by_keys() -> TestResult {
    on_both(async |store| {
        let client = &store.client;
        filled(client).await?;
        client
            .table::<Department>()
            .insert(&Department { department: "Sales".into(), employee_count: 9 })
            .await?;
        let query = client.dynamic("Staff").query(Filter::parse("LastName eq 'Jones'")?);
        assert!(query.collect().await.unwrap_err().is_scan_refused());
        let found: Vec<Stored<DynamicEntity>> = client
            .dynamic("Staff")
            .query(Filter::parse("LastName eq 'Jones'")?)
            .allow_scan()
            .stream()
            .try_collect()
            .await?;
        assert_eq!(found.len(), 6, "the copies too");
        let rows = client
            .dynamic("Staff")
            .query(Keys::partition("Sales").prefix("empid_"))
            .collect()
            .await?;
        assert_eq!(rows.len(), 9);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn several_paths_are_queried_at_once() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        staff.insert(&Employee { department: "Marketing".into(), ..employee(1, "Kwok") }).await?;
        let paths = ["Sales", "Marketing", "Empty"].map(|d| Employee::primary().department(d));
        let many: Vec<Stored<Employee>> =
            staff.query_many(paths).concurrency(8).stream().try_collect().await?;
        assert_eq!(many.len(), 10);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_range_of_employees_skips_their_reviews() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        let reviews = store.client.table::<Review>();
        let review = |id, year| Review { department: "Sales".into(), id, year, manager_rating: 5 };
        reviews.insert(&review(3, 2012)).await?;
        reviews.insert(&review(3, 2013)).await?;
        let range = staff.query(Employee::primary().department("Sales").id_range(3..=4));
        assert_eq!(range.collect().await?.iter().map(|e| e.id).collect::<Vec<_>>(), [3, 4]);
        let of_three = reviews.query(Review::primary().department("Sales").id(3));
        assert_eq!(of_three.collect().await?.len(), 2);
        let foreign = Point::<Employee>::at("Sales", "empid_000003_2012");
        assert!(staff.get(foreign).await.unwrap_err().is_unrecognized_entity());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_does_not_fit_is_said_by_the_verb() -> TestResult {
    on_both(async |store| {
        let staff = filled(&store.client).await?;
        store.recorder.clear();
        let error =
            staff.get(Employee::primary().department("Sales").id(1_000_000)).await.unwrap_err();
        assert!(error.is_invalid(), "{error:?}");
        let wide = staff.query(Employee::primary().department("Sales").id_range(1..=1_000_000));
        // A range ends with the last number that the part can hold.
        assert!(wide.explain().fault.is_none());
        assert_eq!(store.count(), 0);
        assert!(!wide.collect().await?.is_empty());
        Ok(())
    })
    .await
}
