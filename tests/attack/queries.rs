//! Tests queries: conditions, projections, pages and their cursors.

use entable::backend::{Memory, layer::Recorder};
use entable::prelude::*;

use crate::{Contact, Employee, Review, employee, point, staff};

fn sales() -> impl Path<Entity = Employee, View: FullView> {
    Employee::primary().department("Sales")
}

#[tokio::test]
async fn optional_fields_answer_as_the_service_does() -> Result<(), Error> {
    let (_, staff) = staff().await;
    for id in 1..=4 {
        let salary = (id % 2 == 0).then_some(f64::from(id));
        staff.insert(&Employee { salary, ..employee(id) }).await?;
    }
    for (filter, expected) in [
        (Employee::SALARY.ge(2.0), 2),
        (Employee::SALARY.gt(2.0), 1),
        (Employee::SALARY.ne(2.0), 1),
        (!Employee::SALARY.eq(2.0), 3),
        (!Employee::SALARY.ne(2.0), 3),
        (Employee::NOTE.eq("x"), 0),
        (Employee::ID.eq(1) | Employee::ID.ge(4), 2),
        (!(Employee::ID.eq(1) | Employee::ID.ge(4)) & Employee::AGE.ge(32), 2),
        (!(!Employee::ID.lt(3)), 2),
        (Employee::DEPARTMENT.eq("Sales"), 4),
        (!Employee::DEPARTMENT.eq("Sales"), 0),
        (Employee::DEPARTMENT.eq("Other") | Employee::ID.le(1), 1),
    ] {
        let shown = format!("{filter:?}");
        let found = staff.query(sales()).filter(filter.clone()).collect().await?;
        assert_eq!(found.len(), expected, "{shown}");
        let found = staff.query(Employee::scan()).filter(filter).collect().await?;
        assert_eq!(found.len(), expected, "scan {shown}");
    }
    Ok(())
}

#[tokio::test]
async fn system_columns_are_compared() -> Result<(), Error> {
    let (_, staff) = staff().await;
    let before = time::OffsetDateTime::now_utc() - time::Duration::hours(1);
    staff.insert(&employee(1)).await?;
    let recent = staff.query(sales()).filter(Employee::TIMESTAMP.ge(before)).collect().await?;
    assert_eq!(recent.len(), 1);
    assert!(recent[0].timestamp().is_some_and(|at| at > before));
    let none = staff.query(sales()).filter(Employee::TIMESTAMP.lt(before)).collect().await?;
    assert!(none.is_empty());
    let key = staff.query(sales()).filter(Employee::ROW_KEY.eq("empid_000001")).collect().await?;
    assert_eq!(key.len(), 1);
    let key = staff
        .query(Employee::scan())
        .filter(Employee::PARTITION_KEY.eq("Sales") & Employee::ROW_KEY.gt("empid_000000"))
        .select::<Contact>()
        .collect()
        .await?;
    assert_eq!((key.len(), key[0].id), (1, 1));
    Ok(())
}

#[tokio::test]
async fn take_goes_on_across_cursors() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.bulk().insert_all((1..=100).map(employee)).await?;
    for (take, size) in [(1, 1), (7, 3), (10, 10), (10, 1000), (50, 49), (100, 7), (1000, 33)] {
        let query = staff.query(sales()).take(take).page_size(size);
        let (mut cursor, mut ids) = (None, Vec::new());
        loop {
            let page = query.page(cursor).await?;
            assert!(page.items.len() <= size as usize);
            ids.extend(page.items.iter().map(|e| e.id));
            match page.next {
                Some(next) => {
                    let text = next.to_string();
                    cursor = Some(text.parse::<Cursor>()?);
                }
                None => break,
            }
        }
        let expected: Vec<u32> = (1..=u32::try_from(take).unwrap().min(100)).collect();
        assert_eq!(ids, expected, "take {take} size {size}");
        assert_eq!(query.collect().await?.len(), expected.len());
    }
    assert!(staff.query(sales()).take(0).collect().await?.is_empty());
    for size in [0, 1001] {
        let error = staff.query(sales()).page_size(size).collect().await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(&size.to_string()), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn cursors_outlive_deletes_and_inserts() -> Result<(), Error> {
    let (_, staff) = staff().await;
    staff.bulk().insert_all((1..=20).map(|id| employee(id * 10))).await?;
    let query = staff.query(sales()).page_size(5);
    let page = query.page(None).await?;
    for id in [50, 60, 70] {
        staff.delete_at(point(id)).await?;
    }
    staff.insert(&employee(5)).await?;
    staff.insert(&employee(75)).await?;
    let page = query.page(page.next).await?;
    let ids: Vec<_> = page.items.iter().map(|e| e.id).collect();
    assert_eq!(ids, [75, 80, 90, 100, 110]);
    let other = staff.query(sales()).filter(Employee::AGE.ge(1)).page_size(5);
    let error = other.page(page.next.clone()).await.unwrap_err();
    assert!(error.is_invalid_cursor(), "{error}");
    let error = staff.query(sales()).select::<Contact>().page(page.next).await.unwrap_err();
    assert!(error.is_invalid_cursor() && error.table() == Some("Staff"), "{error}");
    for text in ["", "x", "1", "AAAA", "😀", "e1", "0", &"A".repeat(1000)] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn foreign_rows_are_skipped_and_named() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let staff: Table<Employee> = client.table();
    let reviews: Table<Review> = client.table();
    staff.create_if_not_exists().await?;
    for id in 1..=30 {
        for year in 2010..2015 {
            let department = "Sales".into();
            reviews.insert(&Review { department, id, year, rating: None }).await?;
        }
    }
    staff.insert(&employee(30)).await?;
    recorder.clear();
    assert_eq!(staff.query(sales()).first().await?.unwrap().id, 30);
    assert!(recorder.count() <= 3, "{} requests for first()", recorder.count());
    recorder.clear();
    assert_eq!(staff.query(sales()).take(1).collect().await?.len(), 1);
    let page = staff.query(sales()).page_size(5).page(None).await?;
    assert!(page.items.is_empty() && page.next.is_some());
    assert_eq!(reviews.query(Review::scan()).collect().await?.len(), 150);
    assert_eq!(staff.query(Employee::scan()).collect().await?.len(), 1);
    let foreign = Point::<Employee>::at("Sales", "empid_000001_2010");
    let error = staff.get(foreign.clone()).await.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("Review") && text.contains("Staff") && text.contains("empid_000001_2010")
    );
    let error = staff.update(foreign, |_| Ok(())).await.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    let id = reviews
        .query(Review::primary().department("Sales").id(3))
        .filter(Review::YEAR.ge(2013))
        .collect()
        .await?;
    assert_eq!(id.len(), 2);
    Ok(())
}

#[tokio::test]
async fn rows_without_an_entity_type_are_not_ours() -> Result<(), Error> {
    let (client, staff) = staff().await;
    let raw = client.dynamic("Staff");
    raw.insert(&DynamicEntity::new("Sales", "empid_000007").with("Age", 3)).await?;
    let error = staff.get(point(7)).await.unwrap_err();
    assert!(error.is_unrecognized_entity(), "{error}");
    assert!(staff.query(sales()).collect().await?.is_empty());
    let ours = DynamicEntity::new("Sales", "empid_000008").with("EntityType", "Employee");
    raw.insert(&ours.clone().with("Age", "three")).await?;
    let error = staff.get(point(8)).await.unwrap_err();
    assert!(error.is_decode(), "{error}");
    let error = staff.query(sales()).collect().await.unwrap_err();
    assert_eq!(error.table(), Some("Staff"), "{error}");
    assert_eq!(error.keys(), Some(("Sales", "empid_000008")), "{error}");
    Ok(())
}

#[tokio::test]
async fn untyped_queries_parse_and_refuse() -> Result<(), Error> {
    let (client, staff) = staff().await;
    staff.insert(&employee(1)).await?;
    let rows = client.dynamic("Staff");
    let keys = Keys::partition("Sales").prefix("empid_0");
    assert_eq!(rows.query(keys).collect().await?.len(), 1);
    let query = rows.query(Filter::parse("LastName eq 'Hall'")?);
    assert!(query.collect().await.unwrap_err().is_scan_refused());
    let query = query.allow_scan();
    let mut stream = query.stream();
    while let Some(row) = stream.next().await {
        assert_eq!(row?.str("LastName")?, "Hall");
    }
    for text in [
        "LastName eq",
        "eq 'x'",
        "LastName = 'x'",
        "(LastName eq 'x'",
        "LastName eq 'x",
        "and and",
        "startswith(LastName,'x')",
        "Age eq 99999999999",
        "Age eq null",
        "LastName EQ 'x'",
        "é é é",
        "At eq datetime'x'",
        "Id eq guid'x'",
        "B eq X'0'",
        "\u{0}",
        "a eq 1 or",
        "not",
        "a eq -",
    ] {
        let error = Filter::parse(text).expect_err(text);
        let shown = error.to_string();
        assert!(
            shown.contains(text.escape_debug().to_string().as_str()) || shown.len() > 20,
            "{shown}"
        );
    }
    let error = rows.query(Keys::partition("x")).page(None).await;
    assert!(error?.items.is_empty());
    let error = client.dynamic("Nowhere").get("a", "b").await.unwrap_err();
    assert!(error.is_not_found() && error.table() == Some("Nowhere"), "{error}");
    Ok(())
}
