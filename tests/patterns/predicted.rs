//! What a pattern predicts is what its call sends, request for request.

use entable::{
    patterns::{self, Pattern},
    prelude::*,
};

use crate::store::Store;

macro_rules! compare_writes {
    ($name:ident; $(@$part:literal)? $($setting:meta),*) => { Box::pin(async {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "dep_{department}", row_key = "empid_{id:06}" $(, $setting)*)]
        struct $name {
            department: String,
            id: u32,
            last_name: String,
            city: String,
            email: String,
            $(#[table(part = $part)])?
            age: i32,
        }

        let new = |id: u32, name: &str| $name {
            department: "Sales".into(),
            id,
            last_name: name.into(),
            city: name.into(),
            email: format!("{name}{id}@contoso.com"),
            age: 30,
        };
        let at = |id: u32| $name::primary().department("Sales").id(id);
        let mut store = Store::new(|builder| builder);
        let staff = store.client.table::<$name>();
        staff.create().await.unwrap();
        // Lists that exist, and a registered partition.
        for id in 1..=6 {
            staff.insert(&new(id, "Jones")).await.unwrap();
            staff.insert(&new(id + 10, "Smith")).await.unwrap();
            store.client.wait_for_copies().await;
        }
        staff.delete_at(at(14)).await.unwrap();

        store.begin().await;
        let mut stored = staff.insert(&new(7, "Jones")).await.unwrap();
        store.compare("insert", patterns::insert::<$name>(), 1).await;
        stored.age += 1;
        let mut stored = staff.replace(&stored).await.unwrap();
        store.compare("replace", patterns::replace::<$name>(), 1).await;
        *stored = $name { age: stored.age, ..new(7, "Smith") };
        staff.replace(&stored).await.unwrap();
        store.compare("replace_keys", patterns::replace_keys::<$name>(), 1).await;
        staff.patch_at(at(1), $name::patch().age(50)).await.unwrap();
        store.compare("patch_at", patterns::patch_at::<$name>(), 1).await;
        staff.update(at(2), |person| { person.age += 1; Ok(()) }).await.unwrap();
        store.compare("update", patterns::update::<$name>(), 1).await;
        staff.insert_or_replace(&$name { age: 31, ..new(5, "Jones") }).await.unwrap();
        store.compare("insert_or_replace", patterns::insert_or_replace::<$name>(), 1).await;
        staff.insert_or_merge(&$name { age: 31, ..new(6, "Jones") }).await.unwrap();
        store.compare("insert_or_merge", patterns::insert_or_merge::<$name>(), 1).await;
        let stored = staff.get(at(3)).await.unwrap().unwrap();
        store.compare("get", patterns::get(at(3)), 1).await;
        staff.delete(&stored).await.unwrap();
        store.compare("delete", patterns::delete::<$name>(), 1).await;
        staff.delete_at(at(4)).await.unwrap();
        store.compare("delete_at", patterns::delete_at::<$name>(), 1).await;
        store.wrong.iter().map(|wrong| format!("{} {wrong}", stringify!($name))).collect::<Vec<_>>()
    }).await };
}

#[tokio::test(start_paused = true)]
async fn writes_send_what_their_patterns_predict() {
    let wrong = [
        compare_writes!(Alone;),
        compare_writes!(LocalIndex; index(ByEmail, row_key = "email_{email:lower}", unique)),
        compare_writes!(
            TwoIndexesAndAList;
            index(ByEmail, row_key = "email_{email:lower}", unique),
            index(ByName, row_key = "name_{last_name}_{id:06}"),
            list(ByCity, row_key = "city_{city}")
        ),
        compare_writes!(
            RemoteIndex;
            index(ByName, partition_key = "name_{last_name}", row_key = "{department}_{id:06}")
        ),
        compare_writes!(
            UniqueElsewhere;
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
        ),
        compare_writes!(
            RemoteList; list(ByCity, partition_key = "city_{city}", row_key = "ids")
        ),
        compare_writes!(Parts; @2 wide),
        compare_writes!(
            OfAllKinds;
            index(ByName, row_key = "name_{last_name}_{id:06}"),
            list(ByCity, row_key = "city_{city}"),
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
            list(ByTown, partition_key = "town_{city}", row_key = "ids")
        ),
    ]
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}", only(email)),
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
    list(ByCity, row_key = "city_{city}"),
    list(ByTown, partition_key = "town_{city}", row_key = "ids")
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    email: String,
    age: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Contact {
    id: u32,
    email: String,
}

#[tokio::test(start_paused = true)]
async fn reads_send_what_their_patterns_predict() {
    let mut store = Store::new(|builder| builder);
    let staff = store.client.table::<Employee>();
    staff.create().await.unwrap();
    let people: Vec<Employee> = (0..2_500)
        .map(|id| Employee {
            department: "Sales".into(),
            id,
            last_name: if id < 40 { "Jones".into() } else { "Smith".into() },
            city: if id < 3 { "Kiel".into() } else { format!("Town{}", id / 10) },
            email: format!("{id}@contoso.com"),
            age: 30,
        })
        .collect();
    for person in people.iter().take(50) {
        staff.insert(person).await.unwrap();
    }
    let sales = || Employee::primary().department("Sales");
    let jones = || Employee::by_name().department("Sales").last_name("Jones");

    store.begin().await;
    staff.get(sales().id(7)).await.unwrap().unwrap();
    store.compare("get", patterns::get(sales().id(7)), 1).await;
    let path = || Employee::by_email().email("7@contoso.com");
    staff.get(path()).await.unwrap().unwrap();
    store.compare("get elsewhere", patterns::get(path()), 1).await;
    let path = || jones().id(7);
    staff.get_as::<Contact>(path()).await.unwrap().unwrap();
    store.compare("get_as", patterns::get_as::<Contact>(path()), 1).await;
    let found = staff.query(jones()).select::<Contact>().collect().await.unwrap();
    assert_eq!(found.len(), 40);
    store.compare("partial copies", patterns::query(jones()).select::<Contact>(), 40).await;
    let take = |query: Query<Employee>| query.take(10);
    take(staff.query(sales().id_range(..))).collect().await.unwrap();
    store.compare("take", take(patterns::query(sales().id_range(..))), 50).await;
    let small = |query: Query<Employee>| query.page_size(20);
    small(staff.query(sales().id_range(..))).collect().await.unwrap();
    store.compare("pages of 20", small(patterns::query(sales().id_range(..))), 50).await;
    let path = || Employee::by_city().department("Sales").city("Kiel");
    assert_eq!(staff.query(path()).collect().await.unwrap().len(), 3);
    store.compare("a local list", patterns::query(path()), 3).await;
    let path = || Employee::by_town().city("Kiel");
    assert_eq!(staff.query(path()).collect().await.unwrap().len(), 3);
    store.compare("a remote list", patterns::query(path()), 3).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Reading", partition_key = "{sensor}", row_key = "{number:08}")]
struct Reading {
    sensor: String,
    number: u32,
    value: f64,
}

#[tokio::test(start_paused = true)]
async fn pages_are_counted_as_they_are_sent() {
    for (rows, expected) in [(0, 1), (999, 1), (1_000, 1), (1_001, 2), (2_500, 3)] {
        let mut store = Store::new(|builder| builder);
        let readings = store.client.table::<Reading>();
        readings.create().await.unwrap();
        let all = (0..rows).map(|number| Reading { sensor: "a".into(), number, value: 1.0 });
        readings.bulk().insert_all(&all.collect::<Vec<_>>()).await.unwrap().into_result().unwrap();
        store.begin().await;
        let path = || Reading::primary().sensor("a");
        assert_eq!(readings.query(path()).collect().await.unwrap().len(), rows as usize);
        let pattern = Pattern::partition_scan("all", patterns::query(path())).rows(u64::from(rows));
        assert_eq!(pattern.request_count(), expected, "{rows} rows");
        store.compare("pages", patterns::query(path()), u64::from(rows)).await;
        assert!(store.wrong.is_empty(), "{rows} rows: {}", store.wrong.join("\n"));
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}", only(email)),
    index(ByCity, row_key = "city_{city}_{id:06}", only(age)),
    index(ByNumber, row_key = "number_{id:06}", only(id)),
    index(
        ByTown,
        partition_key = "town_{city}",
        row_key = "in_{department}_{id:06}",
        only(id, age)
    ),
    index(
        ByEmail,
        partition_key = "mail_{last_name}_{id:06}",
        row_key = "is",
        unique,
        only(email)
    )
)]
struct Partly {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    email: String,
    age: i32,
    phone: String,
}

/// Returns someone whose e-mail, age and phone are those of `number`.
fn partly(id: u32, number: i32) -> Partly {
    Partly {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        city: "Kiel".into(),
        email: format!("{number}@contoso.com"),
        age: number,
        phone: number.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn partial_copies_that_lack_the_change_are_not_written() {
    let mut store = Store::new(|builder| builder);
    let staff = store.client.table::<Partly>();
    staff.create().await.unwrap();
    staff.insert(&partly(1, 1)).await.unwrap();
    let at = || Partly::primary().department("Sales").id(1);

    store.begin().await;
    let mut number = 1;
    macro_rules! compare {
        ($field:ident, $column:ident) => {
            number += 1;
            let name = stringify!($field);
            let mut stored = staff.get(at()).await.unwrap().unwrap();
            store.begin().await;
            stored.$field = partly(1, number).$field;
            let mut stored = staff.replace(&stored).await.unwrap();
            let question = patterns::replace::<Partly>().changing(Partly::$column);
            store.compare(&format!("replace {name}"), question, 1).await;
            number += 1;
            let value = partly(1, number).$field;
            staff.patch_at(at(), Partly::patch().$field(value)).await.unwrap();
            let question = patterns::patch_at::<Partly>().changing(Partly::$column);
            store.compare(&format!("patch_at {name}"), question, 1).await;
            number += 1;
            let value = partly(1, number).$field;
            staff
                .update(at(), move |one| {
                    one.$field = value.clone();
                    Ok(())
                })
                .await
                .unwrap();
            let question = patterns::update::<Partly>().changing(Partly::$column);
            store.compare(&format!("update {name}"), question, 1).await;
            number += 1;
            stored.$field = partly(1, number).$field;
            staff.insert_or_replace(&stored).await.unwrap();
            let question = patterns::insert_or_replace::<Partly>().changing(Partly::$column);
            store.compare(&format!("insert_or_replace {name}"), question, 1).await;
            number += 1;
            stored.$field = partly(1, number).$field;
            staff.insert_or_merge(&stored).await.unwrap();
            let question = patterns::insert_or_merge::<Partly>().changing(Partly::$column);
            store.compare(&format!("insert_or_merge {name}"), question, 1).await;
        };
    }
    compare!(email, EMAIL);
    compare!(age, AGE);
    compare!(phone, PHONE);

    // Without the name of a property, all of them change. A copy of keys alone never does.
    let mut stored = staff.get(at()).await.unwrap().unwrap();
    store.begin().await;
    *stored = partly(1, number + 1);
    let stored = staff.replace(&stored).await.unwrap();
    store.compare("replace", patterns::replace::<Partly>(), 1).await;
    staff.delete(&stored).await.unwrap();
    store.compare("delete", patterns::delete::<Partly>(), 1).await;
    staff.insert(&partly(2, 1)).await.unwrap();
    store.compare("insert", patterns::insert::<Partly>(), 1).await;
    assert!(store.wrong.is_empty(), "{}", store.wrong.join("\n"));
}

#[test]
fn a_change_that_makes_no_sense_is_refused_in_words() {
    let fault = |question: patterns::Question| {
        let pattern = Pattern::write("change", question);
        patterns_of(pattern).unwrap_err().message().to_owned()
    };
    let key = fault(patterns::update::<Partly>().changing(Partly::CITY));
    assert!(key.contains("`City` is in a key of `Partly`: ask for `replace_keys`"), "{key}");
    let other = fault(patterns::update::<Partly>().changing(Reading::VALUE));
    assert!(other.contains("`Partly` has no property `Value`"), "{other}");
    let insert = fault(patterns::insert::<Partly>().changing(Partly::AGE));
    assert!(
        insert.contains("`insert` does not change one property: use `changing` with"),
        "{insert}"
    );
}

/// Checks one pattern.
fn patterns_of(pattern: Pattern) -> entable::Result<()> {
    static ONE: std::sync::Mutex<Option<Pattern>> = std::sync::Mutex::new(None);
    *ONE.lock().unwrap() = Some(pattern);
    patterns::AccessPatterns::new("ONE", || ONE.lock().unwrap().iter().cloned().collect()).check()
}
