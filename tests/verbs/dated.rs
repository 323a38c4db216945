//! Tests entities whose table is named by the period of a field: where rows go, what reads cost, and
//! what is dropped.

use std::time::Duration;

use entable::{
    Client, Cursor, Error, ErrorKind, KeyScope, Keyring, RootKey,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, Request, RequestKind},
    },
    prelude::*,
};
use futures_util::StreamExt;
use time::{
    Date, OffsetDateTime,
    macros::{date, datetime},
};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:03}")]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
    from: String,
}

/// The keys do not hold the time.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d%H}",
    partition_key = "{page}",
    row_key = "id_{id:06}",
    index(ByGuest, row_key = "guest_{guest}_{id:06}"),
    index(ByName, partition_key = "name_{guest}", row_key = "page_{page}_{id:06}")
)]
struct Visit {
    page: String,
    id: u32,
    guest: String,
    at: OffsetDateTime,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Bills{on:%Y%m}", partition_key = "{shop}", row_key = "{on:%Y%m%d}_{id:04}")]
struct Bill {
    shop: String,
    on: Date,
    id: u16,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, Message)]
#[table(name = "welcome", unauthenticated)]
struct Welcome {
    user: String,
}

fn login(at: OffsetDateTime, id: u16) -> Login {
    Login { user: "don".into(), at, id, from: "Kiel".into() }
}

fn visit(at: OffsetDateTime, id: u32) -> Visit {
    Visit { page: "home".into(), id, guest: format!("g{}", id % 2), at }
}

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;

fn recorded() -> (Recorder, Client) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    (recorder, client)
}

/// Two log-ins on each of `days` days from noon of July 31 back.
async fn logins(client: &Client, days: i32) -> Table<Login> {
    let logins: Table<Login> = client.table();
    for day in 0..days {
        for id in 0..2 {
            logins.insert(&login(NOON - DAY * day, id)).await.unwrap();
        }
    }
    logins
}

fn tables_read(recorder: &Recorder) -> Vec<String> {
    let tables = recorder.requests().into_iter().map(|request| match request {
        Request::Scan { table, .. } => table,
        other => panic!("{other:?}"),
    });
    tables.collect()
}

#[tokio::test]
async fn a_row_goes_to_the_table_of_its_field_which_is_made_once() {
    let (recorder, client) = recorded();
    let logins: Table<Login> = client.table();
    logins.insert(&login(NOON, 1)).await.unwrap();
    let requests = recorder.take();
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests[0].is_apply() && requests[1].is_scan() && requests[3].is_apply());
    assert_eq!(requests[2], Request::CreateTable("Logins20140731".into()));
    logins.insert(&login(NOON, 2)).await.unwrap();
    logins.insert_or_replace(&login(NOON, 2)).await.unwrap();
    assert_eq!(recorder.count(), 2);
    // The last 100 ns of a day are of that day, in UTC.
    let late = datetime!(2014-08-01 01:59:59.999_999_9 +2);
    logins.insert(&login(late, 3)).await.unwrap();
    assert_eq!(client.tables().await.unwrap(), ["Logins20140731"]);
    let row = client.dynamic("Logins20140731").query(Keys::partition("don")).first().await.unwrap();
    assert!(row.unwrap().row_key().ends_with("_003"));
}

#[tokio::test]
async fn verbs_find_the_table_from_the_path_or_the_entity() {
    let (recorder, client) = recorded();
    let logins: Table<Login> = client.table();
    logins.insert(&login(NOON, 1)).await.unwrap();
    let point = || Login::primary().user("don").at(NOON).id(1);
    recorder.clear();
    let mut don = logins.get(point()).await.unwrap().unwrap();
    assert_eq!(*don, login(NOON, 1));
    don.from = "Oslo".into();
    let don = logins.replace(&don).await.unwrap();
    logins.patch(&don, Login::patch().from("Rome".to_owned())).await.unwrap();
    logins.patch_at(don.point(), Login::patch().from("Bern".to_owned())).await.unwrap();
    let updated = logins
        .update(point(), |login| {
            login.from.push('!');
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(updated.from, "Bern!");
    assert_eq!(recorder.count(), 6);
    logins.delete(&updated).await.unwrap();
    assert!(!logins.delete_at(point()).await.unwrap());
    assert_eq!(client.tables().await.unwrap(), ["Logins20140731"]);
}

#[tokio::test]
async fn a_missing_table_is_empty_to_reads_and_is_made_by_inserts_alone() {
    let (recorder, client) = recorded();
    let logins: Table<Login> = client.table();
    let point = Login::primary().user("don").at(NOON).id(1);
    assert!(logins.get(point.clone()).await.unwrap().is_none());
    assert!(!logins.delete_at(point.clone()).await.unwrap());
    let window = Login::primary().at_between(NOON..NOON + DAY).user("don");
    assert!(logins.query(window.clone()).collect().await.unwrap().is_empty());
    assert_eq!(logins.query(window).count().await.unwrap(), 0);
    let patched = logins.patch_at(point.clone(), Login::patch().from("x".to_owned())).await;
    assert!(patched.unwrap_err().is_not_found());
    assert!(logins.replace_any(&login(NOON, 1)).await.unwrap_err().is_not_found());
    assert_eq!(recorder.count(), 8);
    assert!(client.tables().await.unwrap().is_empty());
    // Under the name of one of them, it is empty too.
    let day: Table<Login> = client.table_named("Logins20140731");
    assert!(day.get(point).await.unwrap().is_none());
}

#[tokio::test]
async fn a_window_reads_one_range_of_each_table_the_newest_first() {
    let (recorder, client) = recorded();
    let logins = logins(&client, 5).await;
    recorder.clear();
    let whole = Login::primary()
        .at_between(datetime!(2014-07-29 0:00 UTC)..datetime!(2014-08-01 0:00 UTC))
        .user("don");
    let found = logins.query(whole.clone()).collect().await.unwrap();
    let read = tables_read(&recorder);
    assert_eq!(read, ["Logins20140731", "Logins20140730", "Logins20140729"]);
    let times: Vec<_> = found.iter().map(|login| login.at).collect();
    assert_eq!(times, [0, 0, 1, 1, 2, 2].map(|day| NOON - DAY * day));
    assert_eq!(logins.query(whole.clone()).count().await.unwrap(), 6);
    assert_eq!(logins.query(whole).take(3).collect().await.unwrap().len(), 3);
    // The window's bounds are bounds of the RowKey where the keys hold the time.
    recorder.clear();
    let part = Login::primary().at_between(NOON - DAY..NOON).user("don");
    let found = logins.query(part).collect().await.unwrap();
    assert_eq!(found.iter().map(|login| login.at).collect::<Vec<_>>(), [NOON - DAY; 2]);
    let Request::Scan { filter, .. } = &recorder.requests()[0] else { panic!() };
    assert!(filter.matches("RowKey").count() >= 2 && !filter.contains("At "), "{filter}");
    let none = Login::primary().at_between(NOON..NOON).user("don");
    assert!(logins.query(none).collect().await.unwrap().is_empty());
    let wrong = Login::primary().at_between(NOON..NOON - DAY).user("don");
    let wrong = logins.query(wrong).collect().await.unwrap_err();
    assert!(wrong.is_invalid() && wrong.message().contains("ends before it begins"), "{wrong}");
}

#[tokio::test]
async fn eight_tables_of_a_window_are_read_at_a_time() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let logins = logins(&client, 8).await;
    let latency = Duration::from_millis(100);
    for request in 0..8 {
        fault.inject(RequestKind::Scan, request, InjectedFault::Delay(latency));
    }
    tokio::time::pause();
    let start = Instant::now();
    let window = Login::primary().at_between(NOON - DAY * 7..NOON + DAY).user("don");
    assert_eq!(logins.query(window).collect().await.unwrap().len(), 16);
    assert!(start.elapsed() < latency * 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_ninth_table_of_a_window_waits_for_one_of_eight() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let logins = logins(&client, 9).await;
    let latency = Duration::from_millis(100);
    for request in 0..9 {
        fault.inject(RequestKind::Scan, request, InjectedFault::Delay(latency));
    }
    tokio::time::pause();
    let start = Instant::now();
    let window = Login::primary().at_between(NOON - DAY * 8..NOON + DAY).user("don");
    assert_eq!(logins.query(window).collect().await.unwrap().len(), 18);
    let took = start.elapsed();
    assert!((latency * 2..latency * 3).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_cursor_goes_through_the_tables_and_over_one_that_is_dropped() {
    let (_, client) = recorded();
    let logins = logins(&client, 4).await;
    let window = || Login::primary().at_between(NOON - DAY * 3..NOON + DAY).user("don");
    let mut seen = Vec::new();
    let mut cursor: Option<Cursor> = None;
    let mut sizes = Vec::new();
    loop {
        let query = logins.query(window()).page_size(1);
        let page = query.page(cursor).await.unwrap();
        assert!(page.items.len() <= 1);
        seen.extend(page.items.iter().map(|login| (login.at, login.id)));
        // Dropped while the cursor stands inside it: the table before the oldest.
        if seen.len() == 5 {
            client.delete_table_if_exists("Logins20140729").await.unwrap();
        }
        let Some(next) = page.next else { break };
        let text = next.to_string();
        sizes.push(text.len());
        cursor = Some(text.parse().unwrap());
    }
    let expected: Vec<_> = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]
        .map(|(day, id)| (NOON - DAY * day, id))
        .into();
    assert_eq!(seen, expected);
    assert!(sizes.iter().max().unwrap() < &250, "{sizes:?}");
    let other = Login::primary().at_between(NOON - DAY * 2..NOON + DAY).user("don");
    let page = logins.query(window()).page_size(1).page(None).await.unwrap();
    let refused = logins.query(other).page_size(1).page(page.next).await.unwrap_err();
    assert!(refused.is_invalid_cursor(), "{refused}");
}

#[tokio::test]
async fn keys_without_the_time_begin_with_it() {
    let (recorder, client) = recorded();
    let visits: Table<Visit> = client.table();
    for id in 0..6 {
        visits
            .insert(&visit(NOON + time::Duration::minutes(i64::from(id) * 30), id))
            .await
            .unwrap();
    }
    client.wait_for_copies().await;
    let point = || Visit::primary().at(NOON).page("home").id(0);
    assert_eq!(visits.get(point()).await.unwrap().unwrap().id, 0);
    let by_guest = Visit::by_guest().at(NOON).page("home").guest("g1");
    assert_eq!(visits.query(by_guest).collect().await.unwrap().len(), 1);
    recorder.clear();
    let half = NOON + time::Duration::minutes(30);
    let window = Visit::primary().at_between(half..half + time::Duration::HOUR).page("home");
    let found = visits.query(window).collect().await.unwrap();
    assert_eq!(found.iter().map(|visit| visit.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(tables_read(&recorder), ["Visits2014073112", "Visits2014073113"]);
    // All parts of the key given, several tables may have such a row.
    let window = Visit::primary().at_between(NOON..NOON + time::Duration::HOUR).page("home").id(1);
    assert_eq!(visits.query(window).collect().await.unwrap().len(), 1);
    let named = Visit::by_name().at_between(NOON..NOON + DAY).guest("g0");
    assert_eq!(visits.query(named).collect().await.unwrap().len(), 3);
    let report = client.table_named::<Visit>("Visits2014073112").check().await.unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_date_names_the_table_of_its_month() {
    let (_, client) = recorded();
    let bills: Table<Bill> = client.table();
    for on in [date!(2014 - 07 - 30), date!(2014 - 07 - 31), date!(2014 - 08 - 01)] {
        bills.insert(&Bill { shop: "a".into(), on, id: 1 }).await.unwrap();
    }
    assert_eq!(client.tables().await.unwrap(), ["Bills201407", "Bills201408"]);
    let point = Bill::primary().shop("a").on(date!(2014 - 08 - 01)).id(1);
    assert!(bills.get(point).await.unwrap().is_some());
    let window = Bill::primary().on_between(date!(2014 - 07 - 31)..date!(2014 - 08 - 02)).shop("a");
    let found = bills.query(window).collect().await.unwrap();
    assert_eq!(
        found.iter().map(|bill| bill.on).collect::<Vec<_>>(),
        [date!(2014 - 07 - 31), date!(2014 - 08 - 01)]
    );
}

#[tokio::test]
async fn a_changed_period_is_another_table() {
    let (recorder, client) = recorded();
    let logins = logins(&client, 1).await;
    let point = || Login::primary().user("don").at(NOON).id(0);
    let mut don = logins.get(point()).await.unwrap().unwrap();
    don.at += DAY;
    recorder.clear();
    for refused in [
        logins.replace(&don).await.unwrap_err(),
        client.transaction().replace(&don).unwrap_err(),
        client.table_named::<Login>("Logins20140731").insert(&don).await.unwrap_err(),
    ] {
        assert!(refused.is_invalid() && refused.message().contains("move_to"), "{refused}");
    }
    assert_eq!(recorder.count(), 0);
    let updated = logins
        .update(point(), |login| {
            login.at += DAY;
            Ok(())
        })
        .await;
    assert!(updated.unwrap_err().message().contains("move_to"));
    let day = client.table_named::<Login>("Logins20140731");
    let report = day.bulk().insert_all([&*don]).await.unwrap();
    assert!(report.failed[0].error.message().contains("move_to"), "{report:?}");
    logins.move_to(&don, &logins).await.unwrap().wait().await.unwrap();
    assert!(logins.get(point()).await.unwrap().is_none());
    let moved = Login::primary().user("don").at(NOON + DAY).id(0);
    assert_eq!(logins.get(moved).await.unwrap().unwrap().at, NOON + DAY);
}

#[tokio::test]
async fn transactions_hold_one_table_and_bulk_writes_go_over_all() {
    let (recorder, client) = recorded();
    let mut transaction = client.transaction();
    transaction.insert(&login(NOON, 1)).unwrap().insert_or_merge(&login(NOON, 2)).unwrap();
    let refused = transaction.insert(&login(NOON - DAY, 3)).unwrap_err();
    assert!(refused.message().contains("one table"), "{refused}");
    transaction.commit().await.unwrap();
    assert_eq!(recorder.count(), 4);
    let logins: Table<Login> = client.table();
    let rows: Vec<Login> = (0..40).map(|n| login(NOON - DAY * (n / 10), 10 + n as u16)).collect();
    let report = logins.bulk().insert_all(&rows).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (40, 0));
    assert_eq!(client.tables().await.unwrap().len(), 4, "four days, and no table of floors");
    let window = Login::primary().at_between(NOON - DAY * 9..NOON + DAY).user("don");
    assert_eq!(logins.query(window.clone()).collect().await.unwrap().len(), 42);
    let report = logins.query(window.clone()).delete_all().await.unwrap();
    assert_eq!((report.done, report.failed.len()), (42, 0));
    assert_eq!(logins.query(window).count().await.unwrap(), 0);
}

#[tokio::test]
async fn old_tables_are_dropped_by_one_request_each() {
    let (recorder, client) = recorded();
    let logins = logins(&client, 61).await;
    client.create_table("Logins2014").await.unwrap();
    recorder.clear();
    let dropped = logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(dropped.dropped.len(), 60);
    assert_eq!((dropped.dropped[0].as_str(), dropped.kept.len()), ("Logins20140601", 0));
    let deleted = |request: &Request| matches!(request, Request::DeleteTable(_));
    assert_eq!(recorder.requests().iter().filter(|request| deleted(request)).count(), 60);
    assert!(recorder.count() <= 60 + 6, "{}", recorder.count());
    assert_eq!(client.tables().await.unwrap(), ["EntableTables", "Logins2014", "Logins20140731"]);
    // A writer below the floor is told so, and makes nothing.
    recorder.clear();
    let late = logins.insert(&login(NOON - DAY, 1)).await.unwrap_err();
    assert!(late.is_not_found() && late.message().contains("Logins20140731"), "{late}");
    assert_eq!(recorder.count(), 2);
    assert_eq!(logins.create_between(NOON - DAY * 3..NOON + DAY * 2).await.unwrap(), 2);
    // A floor does not fall.
    assert!(logins.drop_before(date!(2014 - 01 - 01)).await.unwrap().dropped.is_empty());
    assert!(logins.insert(&login(NOON - DAY, 1)).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn only_whole_periods_before_the_time_are_dropped() {
    let (_, client) = recorded();
    let logins = logins(&client, 3).await;
    let dropped = logins.drop_before(NOON - DAY).await.unwrap();
    assert_eq!(dropped.dropped, ["Logins20140729"]);
    // By the store's date, everything of 2014 is older than 60 days, and nothing than 200 years.
    assert!(logins.retain(73_000).await.unwrap().dropped.is_empty());
    assert_eq!(logins.retain(60).await.unwrap().dropped, ["Logins20140730", "Logins20140731"]);
    assert!(logins.retain(u32::MAX).await.unwrap().dropped.is_empty());
    let now = OffsetDateTime::now_utc();
    logins.insert(&login(now - DAY * 2, 1)).await.unwrap();
    assert!(logins.retain(2).await.unwrap().dropped.is_empty());
    assert_eq!(logins.retain(1).await.unwrap().dropped.len(), 1);
}

#[tokio::test]
async fn a_table_that_a_late_writer_made_is_dropped_by_the_next_call() {
    let (_, client) = recorded();
    let logins = logins(&client, 2).await;
    logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    // The writer had read the floor before it rose.
    client.create_table("Logins20140730").await.unwrap();
    logins.insert(&login(NOON - DAY, 1)).await.unwrap();
    let dropped = logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(dropped.dropped, ["Logins20140730"]);
}

#[tokio::test]
async fn a_table_with_open_work_is_kept_until_a_worker_has_done_it() {
    let (_, client) = recorded();
    let logins = logins(&client, 3).await;
    let mut transaction = client.transaction();
    transaction.insert(&login(NOON - DAY, 7)).unwrap();
    transaction.emit(&Welcome { user: "don".into() }).unwrap();
    transaction.commit().await.unwrap();
    let dropped = logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(
        (dropped.dropped, dropped.kept),
        (vec!["Logins20140729".into()], vec!["Logins20140730".to_owned()])
    );
    let worker = client.worker().on(|_, _: Welcome| async { Ok(()) });
    worker.drain().await.unwrap();
    let dropped = logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
    assert_eq!(
        (dropped.dropped, dropped.kept),
        (vec!["Logins20140730".into()], Vec::<String>::new())
    );
}

/// A lost connection.
fn lost() -> Error {
    Error::new(ErrorKind::Backend, "connection lost")
}

/// Rows that follow a table that was not read would hide the gap.
#[tokio::test]
async fn a_window_ends_at_the_error_of_a_request() {
    for request in 0..6 {
        let fault = FaultInjector::around(Memory::new());
        let client = Client::builder().backend(fault.clone()).build().unwrap();
        let table = logins(&client, 6).await;
        fault.inject(RequestKind::Scan, request, InjectedFault::Before(lost()));
        let window = Login::primary().at_between(NOON - 5 * DAY..NOON + DAY).user("don");
        let items: Vec<_> = table.query(window).stream().collect().await;
        let (last, before) = items.split_last().unwrap();
        assert!(last.is_err(), "request {request}");
        assert!(before.iter().all(Result::is_ok), "request {request}");
        let days: Vec<_> = before.iter().flatten().map(|login| login.at.date()).collect();
        assert!(days.is_sorted_by(|a, b| a >= b), "{days:?}");
        assert!(before.len() < 12, "request {request}");
    }
}

#[tokio::test]
async fn a_window_fetches_a_page_when_the_one_before_is_used_up() {
    let recorder = Recorder::around(Memory::new());
    let fault = FaultInjector::around(recorder.clone());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let table: Table<Login> = client.table();
    for id in 0..6 {
        table.insert(&login(NOON, id)).await.unwrap();
    }
    let day = NOON - DAY / 2..NOON + DAY / 2;
    let query = table.query(Login::primary().at_between(day).user("don")).page_size(2);
    recorder.clear();
    let mut items = query.stream();
    for _ in 0..2 {
        items.next().await.unwrap().unwrap();
    }
    assert_eq!(recorder.count(), 1, "{recorder}");
    fault.inject(RequestKind::Scan, 0, InjectedFault::Before(lost()));
    assert!(items.next().await.unwrap().is_err());
    assert!(items.next().await.is_none());

    fault.inject(RequestKind::Scan, 2, InjectedFault::Before(lost()));
    let items: Vec<_> = query.stream().collect().await;
    let ids: Vec<_> = items.iter().map(|item| item.as_ref().ok().map(|login| login.id)).collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2), Some(3), None]);
}

#[tokio::test]
async fn dropping_goes_on_after_a_fault_at_any_request() {
    for is_after in [false, true] {
        for request in 0..12 {
            let fault = FaultInjector::around(Memory::new());
            let client = Client::builder().backend(fault.clone()).build().unwrap();
            let logins = logins(&client, 4).await;
            let injected = if is_after { InjectedFault::After } else { InjectedFault::Before };
            fault.inject(RequestKind::Any, request, injected(lost()));
            let first = logins.drop_before(date!(2014 - 07 - 31)).await;
            let was_hit = fault.pending() == 0;
            assert!(was_hit || first.is_ok());
            let floor_stands = logins.insert(&login(NOON - DAY * 9, 1)).await.is_err();
            if let Ok(first) = first {
                assert_eq!(first.dropped.len(), 3);
                assert!(floor_stands);
            } else if !floor_stands {
                // Before the floor, nothing is dropped.
                assert!(client.tables().await.unwrap().len() >= 4);
            }
            fault.clear();
            logins.drop_before(date!(2014 - 07 - 31)).await.unwrap();
            assert_eq!(client.tables().await.unwrap(), ["EntableTables", "Logins20140731"]);
            assert!(logins.insert(&login(NOON - DAY, 1)).await.unwrap_err().is_not_found());
        }
    }
}

#[tokio::test]
async fn an_insert_goes_on_after_a_fault_at_any_request_of_making_its_table() {
    for is_after in [false, true] {
        for request in 0..4 {
            let fault = FaultInjector::around(Memory::new());
            let client = Client::builder().backend(fault.clone()).build().unwrap();
            let logins: Table<Login> = client.table();
            let injected = if is_after { InjectedFault::After } else { InjectedFault::Before };
            fault.inject(RequestKind::Any, request, injected(lost()));
            let first = logins.insert(&login(NOON, 1)).await;
            assert!(first.unwrap_err().is_backend());
            let again = logins.insert(&login(NOON, 1)).await;
            let was_written = is_after && request == 3;
            assert_eq!(again.is_err_and(|error| error.is_conflict()), was_written);
            let window = Login::primary().at_between(NOON..NOON + DAY).user("don");
            assert_eq!(logins.query(window).count().await.unwrap(), 1);
        }
    }
}

#[tokio::test]
async fn many_writers_make_a_table_together() {
    let (_, client) = recorded();
    let logins: Table<Login> = client.table();
    let writes = (0..32).map(|id| {
        let logins = logins.clone();
        async move { logins.insert(&login(NOON, id)).await.map(drop) }
    });
    futures_util::future::try_join_all(writes).await.unwrap();
    let window = Login::primary().at_between(NOON..NOON + DAY).user("don");
    assert_eq!(logins.query(window).count().await.unwrap(), 32);
}

#[tokio::test]
async fn a_table_that_is_being_deleted_is_empty_to_reads_and_refuses_writes() {
    let client = Client::builder()
        .backend(Memory::new().deleting_takes(Duration::from_secs(40)))
        .build()
        .unwrap();
    let logins = logins(&client, 1).await;
    client.delete_table("Logins20140731").await.unwrap();
    let window = Login::primary().at_between(NOON..NOON + DAY).user("don");
    assert!(logins.query(window).collect().await.unwrap().is_empty());
    assert!(logins.get(Login::primary().user("don").at(NOON).id(0)).await.unwrap().is_none());
    let refused = logins.insert(&login(NOON, 1)).await.unwrap_err();
    assert_eq!(refused.code(), Some("TableBeingDeleted"));
}

#[tokio::test]
async fn what_needs_one_table_is_refused_before_any_request() {
    let (recorder, client) = recorded();
    let logins = logins(&client, 2).await;
    recorder.clear();
    let window = || Login::primary().at_between(NOON - DAY..NOON + DAY).user("don");
    let refused = [
        logins.create().await.unwrap_err(),
        logins.create_if_not_exists().await.unwrap_err(),
        logins.delete_table().await.unwrap_err(),
        logins.query(Login::scan()).collect().await.unwrap_err(),
        logins.get(Point::at("don", "x")).await.unwrap_err(),
        logins.delete_at(Point::at("don", "x")).await.unwrap_err(),
        logins.query_many([window()]).in_key_order().collect().await.unwrap_err(),
        client.dynamic("Logins20140731").query(window()).collect().await.unwrap_err(),
        client.table_named::<Login>("Logins20140731").retain(60).await.unwrap_err(),
        client.dynamic(logins.name()).query(Keys::partition("don")).collect().await.unwrap_err(),
    ];
    for error in &refused {
        assert!(error.is_invalid() || error.code().is_none(), "{error:?}");
        assert!(!error.is_not_found(), "{error}");
    }
    assert_eq!(recorder.count(), 0, "{recorder}");
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Notes{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}", seal)]
struct Note {
    user: String,
    at: OffsetDateTime,
    #[table(encrypt)]
    text: String,
}

#[tokio::test]
async fn encrypted_values_belong_to_all_tables_of_their_entity() {
    let scope = KeyScope::default_scope();
    let root = |byte| RootKey::from_bytes([byte; 32]);
    let keys =
        Keyring::builder().primary(&scope, &root(1)).blind_token_key(&scope, 1, &root(2)).build();
    let (recorder, without_keys) = recorded();
    let client = Client::builder().backend(recorder).keys(keys.unwrap()).build().unwrap();
    let notes: Table<Note> = client.table();
    let note = Note { user: "don".into(), at: NOON, text: "secret".into() };
    let stored = notes.insert(&note).await.unwrap();
    let window = Note::primary().at_between(NOON..NOON + DAY).user("don");
    assert_eq!(*notes.query(window).collect().await.unwrap()[0], note);
    // The row as it is stored opens in another table, since the template is what it is bound to.
    let day = without_keys.dynamic("Notes20140731");
    let raw = day.get("don", stored.row_key()).await.unwrap().unwrap();
    for table in ["Notes20140801", "NotesOfAll"] {
        client.create_table(table).await.unwrap();
        without_keys.dynamic(table).insert(&raw).await.unwrap();
        let copy: Table<Note> = client.table_named(table);
        let read = copy.query(Note::scan()).collect().await;
        assert_eq!(*read.unwrap()[0], note, "{table}");
    }
}

#[tokio::test]
async fn one_table_is_opened_by_its_name() {
    let (_, client) = recorded();
    logins(&client, 2).await;
    let day: Table<Login> = client.table_named("Logins20140731");
    assert_eq!(day.query(Login::scan()).collect().await.unwrap().len(), 2);
    let window = Login::primary().at_between(NOON - DAY..NOON).user("don");
    assert!(day.query(window).collect().await.unwrap().is_empty());
    let other = Login::primary().user("don").at(NOON - DAY).id(0);
    assert!(day.get(other).await.unwrap_err().is_invalid());
    let key = day.query(Login::scan()).first().await.unwrap().unwrap();
    assert!(day.get(Point::at("don", key.row_key())).await.unwrap().is_some());
    // A table of any other name takes entities of every time.
    let archive: Table<Login> = client.table_named("Archive");
    archive.create().await.unwrap();
    archive.insert(&login(NOON, 1)).await.unwrap();
    archive.insert(&login(NOON - DAY, 1)).await.unwrap();
    assert_eq!(archive.query(Login::scan()).collect().await.unwrap().len(), 2);
}
