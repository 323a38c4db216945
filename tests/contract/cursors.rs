//! Tests that a cursor continues its own query only.

use entable::{Cursor, KeyScope, Keyring, RootKey, backend::Memory, prelude::*};
use time::{OffsetDateTime, macros::datetime};

use crate::store::TestResult;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "CursorStaff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByCity, row_key = "city_{city}")
)]
struct Employee {
    department: String,
    id: u32,
    city: String,
    age: i32,
    #[table(encrypt, blind)]
    iban: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct Age {
    age: i32,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct City {
    city: String,
}

fn keyring(secret: u8) -> Keyring {
    let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([secret; 32]));
    Keyring::builder().primary(&scope, &root).blind_token_key(&scope, 1, &root).build().unwrap()
}

/// Two entities in each list.
fn city_of(id: u32) -> String {
    if id <= 2 { "Bonn".to_owned() } else { "Kiel".to_owned() }
}

async fn staff() -> Result<Table<Employee>, Error> {
    let keys = keyring(7);
    let client = Client::builder().backend(Memory::new()).keys(keys).build()?;
    let staff = client.table::<Employee>();
    staff.create_if_not_exists().await?;
    for id in 1..=4 {
        let department = "Sales".to_owned();
        let (city, iban) = (city_of(id), format!("DE{id}"));
        staff.insert(&Employee { department, id, city, age: 35, iban }).await?;
    }
    Ok(staff)
}

#[tokio::test]
async fn a_query_of_a_list_refuses_the_cursor_of_another_one() -> TestResult {
    let staff = staff().await?;
    let list = || staff.query(Employee::by_city().department("Sales")).page_size(1);
    let plain = list().page(None).await?.next.unwrap();
    let aged = |age: i32| list().filter(Employee::AGE.ge(age));
    let cursor = aged(30).page(None).await?.next.unwrap();
    assert_eq!(aged(30).page(Some(cursor.clone())).await?.items.len(), 2);
    assert_eq!(list().page(Some(plain.clone())).await?.items.len(), 2);
    for (cursor, query) in [(&cursor, aged(33)), (&cursor, list()), (&plain, aged(30))] {
        assert!(query.page(Some(cursor.clone())).await.unwrap_err().is_invalid_cursor());
    }
    let ages = list().select::<Age>().page(None).await?.next.unwrap();
    assert_eq!(list().select::<Age>().page(Some(ages.clone())).await?.items.len(), 2);
    let cities = list().select::<City>();
    assert!(cities.page(Some(ages.clone())).await.unwrap_err().is_invalid_cursor());
    assert!(list().page(Some(ages)).await.unwrap_err().is_invalid_cursor());

    let holder = |iban: &str| list().filter(!Employee::IBAN.eq(iban.to_owned()));
    let cursor = holder("DE9").page(None).await?.next.unwrap();
    assert_eq!(holder("DE9").page(Some(cursor.clone())).await?.items.len(), 2);
    assert!(holder("DE8").page(Some(cursor)).await.unwrap_err().is_invalid_cursor());
    Ok(())
}

#[tokio::test]
async fn a_negated_condition_on_an_encrypted_value_is_part_of_the_query() -> TestResult {
    let staff = staff().await?;
    let sales = || staff.query(Employee::primary().department("Sales")).page_size(2);
    let others = |iban: &str| sales().filter(!Employee::IBAN.eq(iban.to_owned()));
    let cursor = others("DE1").page(None).await?.next.unwrap();
    assert_eq!(others("DE1").page(Some(cursor.clone())).await?.items.len(), 2);
    for query in [others("DE2"), sales()] {
        assert!(query.page(Some(cursor.clone())).await.unwrap_err().is_invalid_cursor());
    }
    Ok(())
}

#[tokio::test]
async fn a_cursor_does_not_show_an_encrypted_value() -> TestResult {
    // Another store has another blind token key: an attacker cannot compute the number of a guessed value.
    let cursors = async |secret: u8| {
        let keys = keyring(secret);
        let client = Client::builder().backend(Memory::new()).keys(keys).build()?;
        let staff = client.table::<Employee>();
        staff.create_if_not_exists().await?;
        for id in 1..=3 {
            let department = "Sales".to_owned();
            let (city, iban) = (city_of(id), "DE1".to_owned());
            staff.insert(&Employee { department, id, city, age: 30, iban }).await?;
        }
        let query = staff
            .query(Employee::by_city().department("Sales"))
            .page_size(1)
            .filter(!Employee::IBAN.eq("DE2"));
        Ok::<_, Error>(query.page(None).await?.next.unwrap().to_string())
    };
    assert_eq!(cursors(7).await?, cursors(7).await?);
    assert_ne!(cursors(7).await?, cursors(8).await?);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "CursorVisits", partition_key = "{page}", row_key = "{at}")]
struct Visit {
    page: String,
    at: OffsetDateTime,
}

/// A reader of "the last 90 days" who comes back a day later for each page reads the days of the first page.
#[tokio::test]
async fn a_window_that_moves_stays_where_its_first_page_put_it() -> TestResult {
    let client = Client::memory();
    let visits = client.table::<Visit>();
    visits.create().await?;
    let start = datetime!(2026-11-27 12:00 UTC);
    let day = time::Duration::days(1);
    for (page, shift) in [("/", 1), ("/faq", 2)] {
        for number in -95..10_i32 {
            let at = start + day * number + time::Duration::minutes(shift);
            visits.insert(&Visit { page: page.into(), at }).await?;
        }
    }
    let window = |as_of| as_of - day * 90..as_of;
    let one = |as_of| visits.query(Visit::primary().page("/").at_range(window(as_of)));
    let both = |as_of| {
        let path = |page| Visit::primary().page(page).at_range(window(as_of));
        visits.query_many([path("/"), path("/faq")]).in_key_order()
    };
    for is_merged in [false, true] {
        let (mut cursor, mut found, mut pages) = (None::<Cursor>, Vec::new(), 0);
        loop {
            let now = start + day * pages;
            let as_of = cursor.as_ref().and_then(Cursor::as_of).unwrap_or(now);
            let page = if is_merged {
                both(as_of).page_size(40).page(cursor).await?
            } else {
                one(as_of).page_size(40).page(cursor).await?
            };
            pages += 1;
            found.extend(page.items.iter().map(|visit| visit.at));
            let Some(next) = page.next else { break };
            // Said once; the cursors of later pages keep it.
            let next = if pages == 1 { next.with_as_of(as_of) } else { next };
            cursor = Some(next.to_string().parse()?);
        }
        let expected = if is_merged { 180 } else { 90 };
        assert_eq!((found.len(), pages), (expected, (expected as i32 + 39) / 40));
        assert!(found.iter().all(|at| *at < start && *at >= start - day * 90));
    }
    let first = one(start).page_size(1).page(None).await?.next.unwrap();
    assert_eq!(first.as_of(), None);
    let kept = first.with_as_of(start);
    assert!(one(start + day).page(Some(kept)).await.unwrap_err().is_invalid_cursor());
    Ok(())
}
