//! Tests what asks for rows without reading them, what deletes them, and what merges them.

use std::sync::{Arc, Mutex};

use entable::{
    Client, KeyScope, Keyring, RootKey,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, Request, RequestKind},
    },
    prelude::*,
};
use futures_util::FutureExt;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}"),
    index(ByMail, row_key = "mail_{email}", only(age)),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    age: u8,
    email: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}_{year:04}")]
struct Review {
    department: String,
    id: u32,
    year: u16,
    rating: i32,
}

#[derive(Debug, EntitySet)]
enum Row {
    Employee(Employee),
    Review(Review),
}

fn employee(department: &str, id: u32) -> Employee {
    Employee {
        department: department.into(),
        id,
        last_name: ["Jones", "Smith"][id as usize % 2].into(),
        age: 30 + u8::try_from(id).unwrap(),
        email: format!("{id}@contoso.com"),
    }
}

/// Six employees of Sales with a review each, and one of Marketing.
async fn staff() -> (Client, Recorder, Table<Employee>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    for id in 1..=6 {
        staff.insert(&employee("Sales", id)).await.unwrap();
        let review = Review { department: "Sales".into(), id, year: 2014, rating: 3 };
        client.table::<Review>().insert(&review).await.unwrap();
    }
    staff.insert(&employee("Marketing", 7)).await.unwrap();
    recorder.clear();
    (client, recorder, staff)
}

fn selected(request: &Request) -> Vec<String> {
    match request {
        Request::Scan { select, .. } => select.clone().unwrap_or_default(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_count_reads_keys_and_types_alone() {
    let (_, recorder, staff) = staff().await;
    let sales = staff.query(Employee::primary().department("Sales").id_range(1..=6));
    assert_eq!(sales.count().await.unwrap(), 6, "not the reviews");
    let requests = recorder.take();
    assert_eq!(requests.len(), 1);
    assert_eq!(selected(&requests[0]), ["PartitionKey", "RowKey", "EntityType"]);

    assert_eq!(sales.clone().filter(Employee::AGE.ge(34)).count().await.unwrap(), 3);
    assert_eq!(sales.clone().take(2).count().await.unwrap(), 2);
    assert_eq!(sales.clone().take(0).count().await.unwrap(), 0);
    assert_eq!(sales.clone().page_size(1).count().await.unwrap(), 6);

    recorder.clear();
    assert_eq!(staff.query(Employee::scan()).count().await.unwrap(), 7);
    // The filter compares the type, so that no row has to say it.
    assert_eq!(selected(&recorder.take()[0]), ["PartitionKey", "RowKey"]);
}

#[tokio::test]
async fn a_count_is_that_of_the_items_on_every_kind_of_path() {
    let (client, recorder, staff) = staff().await;
    let by_age = staff.query(Employee::by_age().department("Sales"));
    assert_eq!(by_age.count().await.unwrap(), 6);
    assert_eq!(staff.query(Employee::by_mail().department("Sales")).count().await.unwrap(), 6);
    assert!(staff.query(Employee::by_mail().department("Sales")).exists().await.unwrap());

    let jones = || Employee::by_last_name().department("Sales").last_name("Jones");
    recorder.clear();
    assert_eq!(staff.query(jones()).count().await.unwrap(), 3);
    assert_eq!(recorder.take().len(), 1, "a local list needs no look at its entities");
    assert_eq!(staff.query(jones()).filter(Employee::AGE.gt(32)).count().await.unwrap(), 2);
    assert!(!staff.query(jones()).filter(Employee::AGE.gt(90)).exists().await.unwrap());

    let set = client.set::<Row>("Staff").query(Keys::partition("Sales"));
    assert_eq!(set.count().await.unwrap(), 12);
    assert_eq!(set.collect().await.unwrap().len(), 12);
    let copies = set.include_copies();
    assert_eq!(copies.count().await.unwrap(), 24);
    let all = client.dynamic("Staff").query(Keys::partition("Sales"));
    assert_eq!(
        all.count().await.unwrap(),
        u64::try_from(all.collect().await.unwrap().len()).unwrap()
    );
    let foreign = DynamicEntity::new("Sales", "zoo").with("EntityType", "Animal");
    client.dynamic("Staff").insert(&foreign).await.unwrap();
    let set = client.set::<Row>("Staff").query(Keys::partition("Sales"));
    assert!(set.count().await.unwrap_err().is_unrecognized_entity());
    let newer = DynamicEntity::new("Sales", "empid_000009").with("EntityType", "Employee.v7");
    client.dynamic("Staff").insert(&newer).await.unwrap();
    let sales = staff.query(Employee::primary().department("Sales"));
    assert!(sales.count().await.unwrap_err().is_unrecognized_entity());
}

#[tokio::test]
async fn exists_asks_for_one_row() {
    let (_, recorder, staff) = staff().await;
    let sales = staff.query(Employee::primary().department("Sales"));
    assert!(sales.exists().await.unwrap());
    match recorder.take().as_slice() {
        [Request::Scan { top: Some(1), .. }] => {}
        other => panic!("{other:?}"),
    }
    assert!(!sales.filter(Employee::AGE.gt(99)).exists().await.unwrap());
    assert_eq!(recorder.take().len(), 1);
    assert!(!staff.query(Employee::primary().department("None")).exists().await.unwrap());
    assert!(!staff.query(Employee::scan()).take(0).exists().await.unwrap());
}

#[tokio::test]
async fn everything_that_a_query_finds_is_deleted_with_its_copies() {
    let (client, recorder, staff) = staff().await;
    let sales = staff.query(Employee::primary().department("Sales"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_by = seen.clone();
    let old = sales.clone().filter(Employee::AGE.ge(34));
    let report =
        old.delete_all().on_progress(move |p| seen_by.lock().unwrap().push(p.done)).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(report.done, 3);
    assert_eq!(*seen.lock().unwrap(), [3]);
    // The query, both lists, and one transaction.
    assert_eq!(recorder.take().len(), 4);
    assert_eq!(sales.count().await.unwrap(), 3);
    assert_eq!(staff.query(Employee::by_age().department("Sales")).count().await.unwrap(), 3);
    assert_eq!(staff.query(Employee::scan()).count().await.unwrap(), 4);
    assert!(staff.check().await.unwrap().is_clean());

    // Through copies and lists too, and by another type than the entity's.
    let youngest = staff.query(Employee::by_age().department("Sales")).take(1);
    assert_eq!(youngest.delete_all().await.unwrap().done, 1);
    let jones = Employee::by_last_name().department("Sales").last_name("Jones");
    assert_eq!(staff.query(jones).delete_all().await.unwrap().done, 1);
    assert!(staff.check().await.unwrap().is_clean());
    let set = client.set::<Row>("Staff").query(Keys::partition("Sales"));
    assert_eq!(set.delete_all().await.unwrap().done, 7, "an employee and six reviews");
    assert_eq!(client.dynamic("Staff").query(Keys::partition("Sales")).count().await.unwrap(), 0);
    assert_eq!(set.delete_all().await.unwrap().requests, 0);
}

/// Two transactions, one after the other, so that another writer can come in between.
#[tokio::test]
async fn a_row_that_changed_since_it_was_found_is_reported_and_left() {
    let (client, _, _) = staff().await;
    let reviews = client.table::<Review>();
    let year = |year| Review { department: "Law".into(), id: 1, year, rating: 3 };
    reviews.bulk().insert_all((1..=150).map(year)).await.unwrap().into_result().unwrap();
    let point = |year| Review::primary().department("Law").id(1).year(year);
    let other = reviews.clone();
    let found = reviews.query(Review::primary().department("Law").id(1));
    let deletion = found.delete_all().concurrency(1).on_progress(move |progress| {
        if progress.done == 100 {
            other.patch_at(point(149), Review::patch().rating(5)).now_or_never().unwrap().unwrap();
            other.delete_at(point(150)).now_or_never().unwrap().unwrap();
        }
    });
    let report = deletion.await.unwrap();
    assert_eq!((report.done, report.failed.len()), (149, 1), "what is gone is deleted");
    assert_eq!(report.failed[0].index, 148);
    assert!(report.failed[0].error.is_precondition_failed());
    assert_eq!(found.collect().await.unwrap()[0].rating, 5);
    assert_eq!(found.delete_all().await.unwrap().done, 1, "run again, it deletes the rest");
    assert!(!found.exists().await.unwrap());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Events", partition_key = "{id:bucket(4)}", row_key = "{at}_{id}")]
struct Event {
    id: u32,
    at: u32,
}

fn event(id: u32) -> Event {
    Event { id, at: id % 7 }
}

#[tokio::test]
async fn buckets_come_in_key_order_page_by_page() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let events = client.table::<Event>();
    events.create().await.unwrap();
    events.bulk().insert_all((0..50).map(event)).await.unwrap().into_result().unwrap();
    let mut expected: Vec<String> = Vec::new();
    for stored in events.query(Event::scan()).collect().await.unwrap() {
        expected.push(stored.row_key().to_owned());
    }
    expected.sort();
    let merged = events.query_many(Event::primary().id_buckets()).in_key_order();
    let all = merged.collect().await.unwrap();
    assert_eq!(all.iter().map(|item| item.row_key().to_owned()).collect::<Vec<_>>(), expected);

    let pages = merged.clone().page_size(7);
    let (mut found, mut cursor) = (Vec::new(), None);
    recorder.clear();
    let mut count = 0;
    loop {
        let page = pages.page(cursor).await.unwrap();
        assert!(page.items.len() <= 7);
        found.extend(page.items.iter().map(|item| item.row_key().to_owned()));
        count += 1;
        // Through its text, as another process would have it.
        match page.next {
            Some(next) => cursor = Some(next.to_string().parse::<Cursor>().unwrap()),
            None => break,
        }
    }
    assert_eq!(found, expected);
    assert_eq!(count, 8);
    assert_eq!(recorder.take().len(), 4 * 8, "a request for each bucket and page");

    let two = events.query_many(Event::primary().id_buckets().into_iter().take(2)).in_key_order();
    let cursor = pages.page(None).await.unwrap().next;
    assert!(two.page(cursor).await.unwrap_err().is_invalid_cursor());
    let plain = events.query(Event::scan()).page_size(3).page(None).await.unwrap().next;
    assert!(pages.page(plain).await.unwrap_err().is_invalid_cursor());
    assert!(
        events
            .query_many([Event::scan()])
            .in_key_order()
            .page(None)
            .await
            .unwrap_err()
            .is_invalid()
    );
}

#[tokio::test]
async fn equal_row_keys_are_told_apart_by_their_partitions() {
    let (_, _, staff) = staff().await;
    staff.insert(&employee("Marketing", 1)).await.unwrap();
    staff.insert(&employee("Marketing", 2)).await.unwrap();
    let paths = ["Sales", "Marketing", "Sales"].map(|name| Employee::primary().department(name));
    let merged = staff.query_many(paths).in_key_order().page_size(1);
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = merged.page(cursor).await.unwrap();
        found.extend(page.items.iter().map(|item| (item.id, item.department.clone())));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let mut expected: Vec<(u32, String)> = (1..=6).map(|id| (id, "Sales".to_owned())).collect();
    expected.extend([1, 2, 7].map(|id| (id, "Marketing".to_owned())));
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_report_names_the_largest_partitions_first() {
    let (client, recorder, _) = staff().await;
    let report = client.partition_report("Staff").top(1).await.unwrap();
    assert_eq!(recorder.take().len(), 1);
    assert_eq!((report.partitions, report.top.len(), report.requests), (2, 1, 1));
    let sales = &report.top[0];
    assert_eq!(sales.partition_key, "Sales");
    let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await.unwrap();
    assert_eq!(sales.rows, u64::try_from(rows.len()).unwrap());
    let bytes: usize = rows.iter().map(|row| row.row().service_size().unwrap()).sum();
    assert_eq!(sales.bytes, u64::try_from(bytes).unwrap());
    assert!((sales.share - sales.rows as f64 / report.rows as f64).abs() < 1e-9);
    assert!(report.to_string().contains("Sales: "), "{report}");

    let pages = Arc::new(Mutex::new(0));
    let counted = pages.clone();
    let report = client
        .partition_report("Staff")
        .on_progress(move |progress| *counted.lock().unwrap() = progress.rows)
        .await
        .unwrap();
    assert_eq!(*pages.lock().unwrap(), report.rows);
    let order: Vec<&str> = report.top.iter().map(|size| size.partition_key.as_str()).collect();
    assert_eq!(order, ["Sales", "Marketing"]);
    assert!(client.partition_report("None").await.unwrap_err().is_not_found());
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "badge_{id:03}")]
struct Badge {
    department: String,
    id: u32,
    age: i32,
    #[table(encrypt, blind)]
    badge: String,
    #[table(encrypt)]
    bonus: Option<i64>,
}

#[derive(Projection)]
#[table(of = Badge)]
struct Bonus {
    bonus: Option<i64>,
}

#[tokio::test]
async fn a_plain_condition_beside_an_encrypted_one_is_compared_after_decryption() {
    let client = Client::builder().backend(Memory::new()).keys(keyring()).build().unwrap();
    let badges = client.table::<Badge>();
    badges.create().await.unwrap();
    for age in [2_i32, 3] {
        let id = age.unsigned_abs();
        let badge =
            Badge { department: "Sales".into(), id, age, badge: "h".into(), bonus: Some(7) };
        badges.insert(&badge).await.unwrap();
    }
    let found = badges
        .query(Badge::primary().department("Sales"))
        .filter(Badge::BADGE.eq("h"))
        .filter(Badge::AGE.eq(2));
    assert_eq!(found.collect().await.unwrap().len(), 1);
    assert_eq!(found.count().await.unwrap(), 1);
    assert!(found.exists().await.unwrap());
    let bonus = found.select::<Bonus>().collect().await.unwrap();
    assert_eq!(bonus.iter().map(|found| found.bonus).collect::<Vec<_>>(), [Some(7)]);
}

fn keyring() -> Keyring {
    let scope = KeyScope::default_scope();
    let root = |byte| RootKey::from_bytes([byte; 32]);
    Keyring::builder()
        .primary(&scope, &root(1))
        .blind_token_key(&scope, 1, &root(2))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_cursor_belongs_to_one_of_two_tables_whose_names_differ_in_case() {
    let backend = Memory::new().case_sensitive_tables();
    let client = Client::builder().backend(backend).build().unwrap();
    for name in ["Staff", "staff"] {
        let staff = client.table_named::<Plain>(name);
        staff.create().await.unwrap();
        for id in 0..4 {
            staff.insert(&Plain { department: "Sales".into(), id }).await.unwrap();
        }
    }
    let query = |name| {
        client.table_named::<Plain>(name).query(Plain::primary().department("Sales")).page_size(2)
    };
    let cursor = query("Staff").page(None).await.unwrap().next;
    let refused = query("staff").page(cursor.clone()).await.unwrap_err();
    assert!(refused.is_invalid_cursor(), "{refused:?}");
    assert_eq!(query("Staff").page(cursor).await.unwrap().items.len(), 2);
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "plain_{id:03}")]
struct Plain {
    department: String,
    id: u32,
}

#[tokio::test]
async fn a_deletion_that_fails_at_a_later_page_reports_what_it_deleted() {
    let faults = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(faults.clone()).build().unwrap();
    let staff = client.table::<Plain>();
    staff.create().await.unwrap();
    let all = (0..600).map(|id| Plain { department: "Sales".into(), id });
    client.bulk().insert_all(all).await.unwrap();
    let denied = Error::service(entable::ServiceCode::AuthorizationFailure, "no longer");
    faults.inject(RequestKind::Scan, 1, InjectedFault::Before(denied));
    let query = staff.query(Plain::primary().department("Sales")).page_size(200);
    let report = query.delete_all().await.unwrap();
    assert_eq!((report.done, report.failed.len(), report.is_complete()), (200, 1, false));
    assert!(report.failed[0].error.is_denied(), "{:?}", report.failed);
    assert_eq!(query.count().await.unwrap(), 400, "what the report says is true");
    let denied = Error::service(entable::ServiceCode::AuthorizationFailure, "not at all");
    faults.inject(RequestKind::Scan, 0, InjectedFault::Before(denied));
    assert!(query.delete_all().await.unwrap_err().is_denied());
}
