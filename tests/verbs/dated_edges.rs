//! Tests the edges of dated tables: years beyond the calendar, windows the wrong way round, names that
//! are being deleted, clocks that go back, and entities that move between tables or have several rows.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use entable::{
    Clock, Error, ErrorKind, SteppedClock, Ticks,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use time::{
    OffsetDateTime,
    macros::{date, datetime},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:03}")]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
}

/// The keys do not hold the time.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d}",
    partition_key = "{page}",
    row_key = "id_{id:06}",
    index(ByGuest, row_key = "guest_{guest}_{id:06}"),
    index(ByName, partition_key = "name_{guest}", row_key = "page_{page}_{id:06}")
)]
pub struct Visit {
    page: String,
    id: u32,
    guest: String,
    at: OffsetDateTime,
    seconds: Option<i32>,
}

/// An entity of two rows in each table.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Meters{at:%Y%m%d}",
    partition_key = "{site}",
    row_key = "m_{id:06}",
    wide,
    index(ByOwner, row_key = "owner_{owner}_{id:06}", only(at))
)]
pub struct Meter {
    site: String,
    id: u32,
    at: OffsetDateTime,
    owner: String,
    #[table(part = 2)]
    note: String,
    #[table(part = 2)]
    count: i64,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Meter)]
struct Note {
    id: u32,
    note: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Meter)]
struct Owner {
    owner: String,
}

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;

fn login(at: OffsetDateTime, id: u16) -> Login {
    Login { user: "don".into(), at, id }
}

fn visit(at: OffsetDateTime, id: u32) -> Visit {
    Visit { page: "home".into(), id, guest: "eve".into(), at, seconds: None }
}

fn meter(at: OffsetDateTime, id: u32) -> Meter {
    let (owner, note) = (format!("o{}", id % 2), format!("note {id}"));
    Meter { site: "s".into(), id, at, owner, note, count: 1 }
}

fn recorded(memory: Memory) -> (Recorder, Client) {
    let recorder = Recorder::around(memory);
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    (recorder, client)
}

#[tokio::test]
async fn a_time_outside_the_calendar_is_refused_before_any_request() {
    let (recorder, client) = recorded(Memory::new());
    let logins: Table<Login> = client.table();
    let (before, first) = (datetime!(0000-12-31 23:59 UTC), datetime!(0001-01-01 0:00 UTC));
    let point = || Login::primary().user("don").at(before).id(1);
    let window = |from, until| Login::primary().at_between(from..until).user("don");
    let refused = [
        logins.insert(&login(before, 1)).await.unwrap_err(),
        logins.insert_or_replace(&login(before, 1)).await.unwrap_err(),
        client.transaction().insert(&login(before, 1)).map(drop).unwrap_err(),
        logins.get(point()).await.unwrap_err(),
        logins.delete_at(point()).await.unwrap_err(),
        logins.query(window(before, NOON)).collect().await.unwrap_err(),
        logins.query(window(before, before)).count().await.unwrap_err(),
        logins.create_between(before..NOON).await.unwrap_err(),
        logins.drop_before(before).await.unwrap_err(),
    ];
    for error in &refused {
        assert!(error.is_invalid(), "{error:?}");
        assert!(error.to_string().contains("year"), "{error}");
    }
    assert_eq!(recorder.count(), 0, "{recorder}");
    // Both ends of the calendar have tables, and nothing is before the first or after the last.
    let last = datetime!(9999-12-31 23:59:59 UTC);
    for at in [first, last] {
        logins.insert(&login(at, 1)).await.unwrap();
        let point = Login::primary().user("don").at(at).id(1);
        assert_eq!(logins.get(point).await.unwrap().unwrap().at, at);
    }
    for (from, found) in [(first, 1), (last - DAY, 0)] {
        let found_there = logins.query(window(from, from + DAY / 2)).count().await.unwrap();
        assert_eq!(found_there, found);
    }
    let end = logins.query(window(last - DAY, last)).count().await.unwrap();
    assert_eq!(end, 0, "the end of a window is not part of it");
    assert_eq!(
        client.tables().await.unwrap(),
        ["Logins00010101", "Logins99991231"],
        "no floor was written"
    );
    assert!(logins.drop_before(first).await.unwrap().dropped.is_empty());
    assert!(logins.retain(u32::MAX).await.unwrap().dropped.is_empty());
}

#[tokio::test]
async fn a_window_the_wrong_way_round_is_refused_by_each_verb_that_takes_one() {
    let (recorder, client) = recorded(Memory::new());
    let (logins, visits) = (client.table::<Login>(), client.table::<Visit>());
    let wrong = || Login::primary().at_between(NOON..NOON - DAY).user("don");
    let refused = [
        logins.query(wrong()).collect().await.map(drop).unwrap_err(),
        logins.query(wrong()).count().await.map(drop).unwrap_err(),
        logins.query(wrong()).exists().await.map(drop).unwrap_err(),
        logins.query(wrong()).page(None).await.map(drop).unwrap_err(),
        logins.query(wrong()).delete_all().await.map(drop).unwrap_err(),
        visits
            .query(Visit::by_guest().at_between(NOON..NOON - DAY).page("home"))
            .collect()
            .await
            .map(drop)
            .unwrap_err(),
        logins.create_between(NOON..NOON - DAY).await.map(drop).unwrap_err(),
        logins
            .create_between(date!(2014 - 07 - 31)..date!(2014 - 07 - 30))
            .await
            .map(drop)
            .unwrap_err(),
    ];
    for error in &refused {
        assert!(error.is_invalid(), "{error:?}");
        assert!(error.message().contains("ends before it begins"), "{error}");
    }
    assert_eq!(recorder.count(), 0, "{recorder}");
    // A window without any time is no mistake.
    assert_eq!(logins.create_between(NOON..NOON).await.unwrap(), 0);
    let none = Login::primary().at_between(NOON..NOON).user("don");
    assert_eq!(logins.query(none).count().await.unwrap(), 0);
}

/// The service frees a name some 40 s after it deleted the table.
#[tokio::test]
async fn a_name_that_is_being_deleted_is_free_again_only_above_the_floor() {
    let clock = Arc::new(SteppedClock::new(Ticks::try_from(NOON).unwrap()));
    let memory = Memory::with_clock(clock.clone()).deleting_takes(Duration::from_secs(40));
    let client = Client::builder().backend(memory).clock(clock.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    for day in 0..2 {
        logins.insert(&login(NOON - DAY * day, 1)).await.unwrap();
    }
    // One goes by the floor, the other by its name.
    assert_eq!(logins.drop_before(NOON).await.unwrap().dropped, ["Logins20140730"]);
    client.delete_table("Logins20140731").await.unwrap();
    for seconds in [0, 1, 38] {
        clock.advance(Duration::from_secs(seconds));
        let refused = logins.insert(&login(NOON, 2)).await.unwrap_err();
        assert_eq!(refused.code(), Some("TableBeingDeleted"), "{refused:?}");
        let refused = logins.create_between(NOON..NOON + DAY).await.unwrap_err();
        assert_eq!(refused.code(), Some("TableBeingDeleted"), "{refused:?}");
        let late = logins.insert(&login(NOON - DAY, 2)).await.unwrap_err();
        assert!(late.is_not_found() && late.message().contains("floor"), "{late:?}");
        // To read, both are empty.
        let all = Login::primary().at_between(NOON - DAY * 2..NOON + DAY * 2).user("don");
        assert_eq!(logins.query(all).count().await.unwrap(), 0);
        let point = Login::primary().user("don").at(NOON).id(1);
        assert!(logins.get(point).await.unwrap().is_none());
        assert!(logins.check().await.unwrap().is_clean());
    }
    // Dropping goes on beside a table that another program is deleting.
    assert!(logins.drop_before(NOON).await.unwrap().dropped.is_empty());
    clock.advance(Duration::from_secs(2));
    logins.insert(&login(NOON, 2)).await.unwrap();
    let late = logins.insert(&login(NOON - DAY, 2)).await.unwrap_err();
    assert!(late.is_not_found() && late.message().contains("floor"), "{late:?}");
}

/// A clock that can be set.
#[derive(Debug)]
struct SetClock(AtomicI64);

impl SetClock {
    fn set(&self, time: OffsetDateTime) {
        self.0.store(Ticks::try_from(time).unwrap().get(), Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_over_midnight_moves_no_row_and_lowers_no_floor() {
    let midnight = datetime!(2014-08-01 0:00 UTC);
    let minute = time::Duration::MINUTE;
    let (own, stores) =
        (Arc::new(SetClock(AtomicI64::new(0))), Arc::new(SetClock(AtomicI64::new(0))));
    own.set(midnight + minute);
    stores.set(midnight + minute);
    let memory = Memory::with_clock(stores.clone());
    let client = Client::builder().backend(memory).clock(own.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    for day in 0..3 {
        logins.insert(&login(midnight - DAY * day, 1)).await.unwrap();
    }
    // After midnight the first day is older than one day.
    assert_eq!(logins.retain(1).await.unwrap().dropped, ["Logins20140730"]);
    for clock in [&own, &stores] {
        clock.set(midnight - minute);
        // The row's time says where it goes, on either side of midnight.
        logins.insert(&login(midnight - minute, 2)).await.unwrap();
        logins.insert(&login(midnight + minute, 2)).await.unwrap();
        let before = client.table_named::<Login>("Logins20140731");
        let point = Login::primary().user("don").at(midnight - minute).id(2);
        assert!(before.get(point.clone()).await.unwrap().is_some());
        // The day that was dropped stays so, although by the clock it is not old any more.
        let late = logins.insert(&login(midnight - DAY * 2, 2)).await.unwrap_err();
        assert!(late.is_not_found() && late.message().contains("Logins20140731"), "{late}");
        assert!(logins.retain(1).await.unwrap().dropped.is_empty());
        assert_eq!(logins.create_between(midnight - DAY * 3..midnight).await.unwrap(), 0);
        logins.delete_at(point).await.unwrap();
        logins.delete_at(Login::primary().user("don").at(midnight + minute).id(2)).await.unwrap();
    }
    // Midnight comes once more, and with it the same floor.
    stores.set(midnight + minute);
    assert!(logins.retain(1).await.unwrap().dropped.is_empty());
    let window = Login::primary().at_between(midnight - DAY * 3..midnight + DAY).user("don");
    assert_eq!(logins.query(window).count().await.unwrap(), 2);
}

/// Another program raises the floor further while the first one's write of it is on its way.
#[tokio::test(start_paused = true)]
async fn a_floor_that_rose_meanwhile_does_not_fall() {
    let (recorder, client) = recorded(Memory::new());
    let logins: Table<Login> = client.table();
    for day in 0..4 {
        logins.insert(&login(NOON - DAY * day, 1)).await.unwrap();
    }
    logins.drop_before(NOON - DAY * 3).await.unwrap();
    let fault = FaultInjector::around(recorder);
    let second = Duration::from_secs(1);
    fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(second * 2));
    let slower = Client::builder().backend(fault).build().unwrap().table::<Login>();
    let faster = async {
        tokio::time::sleep(second).await;
        logins.drop_before(NOON).await.unwrap()
    };
    let (dropped, at_first) = tokio::join!(slower.drop_before(NOON - DAY * 2), faster);
    assert_eq!((at_first.dropped.len(), dropped.unwrap().dropped.len()), (3, 0));
    let late = logins.insert(&login(NOON - DAY, 2)).await.unwrap_err();
    assert!(late.is_not_found() && late.message().contains("Logins20140731"), "{late}");
}

/// Sends writes of every kind to the table of a day that was dropped.
#[tokio::test]
async fn no_verb_makes_a_table_below_the_floor() {
    let (_, client) = recorded(Memory::new());
    let (logins, visits) = (client.table::<Login>(), client.table::<Visit>());
    let kept = visits.insert(&visit(NOON, 1)).await.unwrap();
    client.wait_for_copies().await;
    client.worker().with::<Visit>().drain().await.unwrap();
    logins.drop_before(NOON).await.unwrap();
    visits.drop_before(NOON).await.unwrap();
    let before = client.tables().await.unwrap();
    let (late, old) = (login(NOON - DAY, 1), visit(NOON - DAY, 2));
    let mut transaction = client.transaction();
    transaction.insert(&late).unwrap().insert_or_merge(&login(NOON - DAY, 2)).unwrap();
    let bulk = logins.bulk().insert_all([login(NOON, 5), late.clone()]).await.unwrap();
    assert_eq!((bulk.done, bulk.failed.len()), (1, 1), "{bulk:?}");
    let replaced = logins.bulk().insert_or_replace_all([late.clone()]).await.unwrap();
    let mut moved = kept.clone();
    moved.at = NOON - DAY;
    let moved = match visits.move_to(&moved, &visits).await {
        Ok(moving) => moving.wait().await.unwrap_err(),
        Err(error) => error,
    };
    let refused = [
        logins.insert(&late).await.map(drop).unwrap_err(),
        logins.insert_or_replace(&late).await.map(drop).unwrap_err(),
        logins.insert_or_merge(&late).await.map(drop).unwrap_err(),
        visits.insert(&old).await.map(drop).unwrap_err(),
        transaction.commit().await.map(drop).unwrap_err(),
        bulk.into_result().map(drop).unwrap_err(),
        replaced.into_result().map(drop).unwrap_err(),
        moved,
    ];
    for error in &refused {
        assert!(error.is_not_found(), "{error:?}");
        assert!(error.to_string().contains("20140731"), "names the floor: {error}");
    }
    let mut tables = client.tables().await.unwrap();
    tables.retain(|table| !before.contains(table));
    assert_eq!(tables, ["Logins20140731"], "that of the entity above the floor");
    // The entity that could not move is where it was.
    let there = visits.get(Visit::primary().at(NOON).page("home").id(1)).await.unwrap();
    assert_eq!(*there.unwrap(), *kept);
}

#[derive(Debug, EntitySet)]
enum DayRow {
    Login(Login),
    Visit(Visit),
}

#[tokio::test]
async fn sets_and_untyped_reads_take_one_table_by_its_name() {
    let (_, client) = recorded(Memory::new());
    let logins: Table<Login> = client.table();
    for day in 0..2 {
        for id in 1..=2 {
            logins.insert(&login(NOON - DAY * day, id)).await.unwrap();
        }
    }
    let day = client.set::<DayRow>("Logins20140731");
    let rows = day.query(Keys::partition("don")).collect().await.unwrap();
    let ids = rows.iter().map(|row| match &**row {
        DayRow::Login(login) => (login.at, login.id),
        DayRow::Visit(visit) => panic!("{visit:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [(NOON, 1), (NOON, 2)]);
    let untyped = client.dynamic("Logins20140730").query(Keys::partition("don"));
    assert_eq!(untyped.count().await.unwrap(), 2);
    // The name of all tables is none of them.
    let all = client.set::<DayRow>(logins.name()).query(Keys::partition("don"));
    assert!(all.collect().await.unwrap_err().is_invalid());
}

#[tokio::test]
async fn bulk_verbs_write_and_delete_in_the_table_of_each_entity() {
    let (_, client) = recorded(Memory::new());
    let logins: Table<Login> = client.table();
    let all = || (0..12_u16).map(|id| login(NOON - DAY * i32::from(id % 3), id));
    logins.bulk().insert_all(all().take(5)).await.unwrap().into_result().unwrap();
    let report = logins.bulk().insert_or_replace_all(all()).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (12, 0));
    for day in 29..=31 {
        let table = client.table_named::<Login>(format!("Logins201407{day}"));
        assert_eq!(table.query(Login::scan()).count().await.unwrap(), 4, "{day}");
    }
    let window = || Login::primary().at_between(NOON - DAY * 9..NOON + DAY).user("don");
    let stored = logins.query(window()).collect().await.unwrap();
    let report = logins.bulk().delete_all(stored.into_iter().take(7)).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (7, 0));
    assert_eq!(logins.query(window()).count().await.unwrap(), 5);
}

#[tokio::test]
async fn entities_of_a_dropped_table_count_as_deleted() {
    let (_, client) = recorded(Memory::new());
    let logins = client.table::<Login>();
    let point = |day: i32, id| Login::primary().user("don").at(NOON - DAY * day).id(id);
    logins.insert(&login(NOON, 1)).await.unwrap();
    assert!(!logins.delete_at(point(7, 1)).await.unwrap());
    let points = [point(7, 1), point(0, 1), point(7, 2), point(8, 3)];
    let report = logins.bulk().delete_all(points).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (4, 0), "{report:?}");
    assert!(logins.get(point(0, 1)).await.unwrap().is_none());
    assert_eq!(client.tables().await.unwrap(), ["Logins20140731"], "a deletion makes no table");

    // With copies, which are read first.
    let seen = |id| Visit::primary().at(NOON - DAY * 9).page("home").id(id);
    let report = client.table::<Visit>().bulk().delete_all([seen(1), seen(2)]).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (2, 0), "{report:?}");

    // A table without a date that is missing is a mistake.
    let other = client.table_named::<Login>("Other");
    let report = other.bulk().delete_all([point(0, 1)]).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (0, 1), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn entities_whose_table_is_dropped_after_their_page_was_read_count_as_deleted() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let logins = client.table::<Login>();
    let all = (0..250).map(|id| login(NOON - DAY * i32::from(id % 2), id));
    logins.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    let window = Login::primary().at_between(NOON - DAY..NOON + DAY).user("don");
    fault.inject(RequestKind::Apply, 0, InjectedFault::Delay(Duration::from_secs(1)));
    let query = logins.query(window.clone());
    let deleted = query.delete_all().concurrency(1);
    let dropped = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        logins.drop_before(date!(2014 - 07 - 31)).await.unwrap()
    };
    let (report, dropped) = tokio::join!(deleted.into_future(), dropped);
    assert_eq!(dropped.dropped, ["Logins20140730"]);
    let report = report.unwrap();
    assert_eq!((report.done, report.failed.len()), (250, 0), "{:?}", report.failed.first());
    assert_eq!(logins.query(window).count().await.unwrap(), 0);
}

async fn rows(client: &Client, table: &str) -> Vec<String> {
    let all = client.dynamic(table).query(Filter::ge("PartitionKey", "")).allow_scan();
    let rows = all.collect().await.unwrap();
    let keys = rows.iter().map(|row| format!("{}/{}", row.partition_key(), row.row_key()));
    keys.filter(|keys| !keys.contains("/~e")).collect()
}

#[tokio::test]
async fn an_entity_moves_to_the_table_of_a_time_that_its_keys_do_not_hold() {
    let (_, client) = recorded(Memory::new());
    let visits: Table<Visit> = client.table();
    visits.insert(&visit(NOON, 1)).await.unwrap();
    let mut moved =
        visits.get(Visit::primary().at(NOON).page("home").id(1)).await.unwrap().unwrap();
    moved.at = NOON + DAY;
    visits.move_to(&moved, &visits).await.unwrap().wait().await.unwrap();
    client.worker().with::<Visit>().drain().await.unwrap();
    assert_eq!(rows(&client, "Visits20140731").await, [""; 0]);
    assert_eq!(
        rows(&client, "Visits20140801").await,
        ["home/guest_eve_000001", "home/id_000001", "name_eve/page_home_000001"]
    );
    let there = visits.get(Visit::primary().at(NOON + DAY).page("home").id(1)).await.unwrap();
    let mut there = there.unwrap();
    assert_eq!(*there, *moved);
    assert!(visits.check().await.unwrap().is_clean());

    // The partition may change with the time; any other change is written first.
    there.at = NOON;
    there.page = "news".into();
    there.seconds = Some(7);
    let refused = visits.move_to(&there, &visits).await.unwrap_err();
    assert!(refused.is_invalid() && refused.message().contains("`replace` first"), "{refused}");
    there.seconds = None;
    // A time of the same day is a property like any other.
    there.at = NOON + DAY + time::Duration::HOUR;
    assert!(visits.move_to(&there, &visits).await.unwrap_err().is_invalid());
    there.at = NOON + DAY * 3;
    visits.move_to(&there, &visits).await.unwrap().wait().await.unwrap();
    client.worker().with::<Visit>().drain().await.unwrap();
    let there = visits.get(Visit::primary().at(NOON + DAY * 3).page("news").id(1)).await.unwrap();
    assert_eq!(there.unwrap().at, NOON + DAY * 3);
    assert_eq!(rows(&client, "Visits20140801").await, [""; 0]);
    assert!(visits.check().await.unwrap().is_clean());
}

/// Lets a request of a move to another time fail, then a worker of another program do what is left.
#[tokio::test]
async fn a_worker_finishes_a_move_to_another_time_after_a_fault_at_any_request() {
    for (nth, is_carried_out) in (0..40).flat_map(|nth| [(nth, false), (nth, true)]) {
        let clock = Arc::new(SteppedClock::new(Ticks::try_from(NOON).unwrap()));
        let fault = FaultInjector::around(Memory::with_clock(clock.clone()));
        let client = || {
            let builder = Client::builder().backend(fault.clone()).clock(clock.clone());
            builder.build().unwrap()
        };
        let own = client();
        let visits: Table<Visit> = own.table();
        let mut moved = visits.insert(&visit(NOON, 1)).await.unwrap();
        own.wait_for_copies().await;
        moved.at = NOON + DAY;
        let lost = || Error::new(ErrorKind::Backend, "connection lost");
        if is_carried_out {
            fault.inject(RequestKind::Apply, nth, InjectedFault::After(lost()));
        }
        let from = nth + usize::from(is_carried_out);
        for later in 0..30 {
            fault.inject(RequestKind::Apply, from + later, InjectedFault::Before(lost()));
        }
        let result = match visits.move_to(&moved, &visits).await {
            Ok(moving) => moving.wait().await,
            Err(error) => Err(error),
        };
        fault.clear();
        let later = client();
        for _ in 0..3 {
            clock.advance(Duration::from_secs(400));
            later.worker().with::<Visit>().drain().await.unwrap();
        }
        let visits: Table<Visit> = later.table();
        let at = |at| Visit::primary().at(at).page("home").id(1);
        let (old, new) =
            (visits.get(at(NOON)).await.unwrap(), visits.get(at(NOON + DAY)).await.unwrap());
        match (old, new) {
            (Some(old), None) => assert_eq!(old.at, NOON, "{nth}"),
            (None, Some(new)) => assert_eq!(new.at, NOON + DAY, "{nth}"),
            other => panic!("request {nth}: {other:?}"),
        }
        assert!(visits.check().await.unwrap().is_clean(), "{nth}");
        if result.is_ok() && !is_carried_out {
            return;
        }
    }
    panic!("no move went through");
}

#[tokio::test]
async fn an_entity_of_several_rows_has_them_in_the_table_of_its_time() {
    let (recorder, client) = recorded(Memory::new());
    let meters: Table<Meter> = client.table();
    for day in 0..3 {
        for id in 1..=3 {
            meters.insert(&meter(NOON - DAY * day, id)).await.unwrap();
        }
    }
    assert_eq!(rows(&client, "Meters20140730").await.len(), 3 * 2 + 3);
    recorder.clear();
    let at = |day, id| Meter::primary().at(NOON - DAY * day).site("s").id(id);
    assert_eq!(*meters.get(at(1, 2)).await.unwrap().unwrap(), meter(NOON - DAY, 2));
    assert_eq!(recorder.count(), 2, "one request for each part");
    let label = meters.get_as::<Note>(at(1, 2)).await.unwrap().unwrap();
    assert_eq!(label.note, "note 2");

    // Windows join parts table by table, and a page ends behind an entity.
    let days = || datetime!(2014-07-29 0:00 UTC)..datetime!(2014-08-01 0:00 UTC);
    let window = || Meter::primary().at_between(days()).site("s");
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = meters.query(window()).page_size(2).page(cursor).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.iter().map(|meter| (meter.at, meter.id, meter.note.clone())));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let all = (0..3).rev().flat_map(|day| (1..=3).map(move |id| (NOON - DAY * day, id)));
    let all: Vec<_> = all.map(|(at, id)| (at, id, format!("note {id}"))).collect();
    assert_eq!(seen, all);
    assert_eq!(meters.query(window()).count().await.unwrap(), 9);
    let owned = Meter::by_owner().at_between(days()).site("s").owner("o1");
    assert_eq!(meters.query(owned).count().await.unwrap(), 6);

    // Part of a day is a filter on the time, which is in one part.
    let half = || Meter::primary().at_between(NOON - DAY..NOON + DAY / 2).site("s");
    let refused = meters.query(half()).collect().await.unwrap_err();
    assert!(refused.is_invalid() && refused.message().contains(".select"), "{refused}");
    assert_eq!(meters.query(half()).select::<Owner>().collect().await.unwrap().len(), 6);

    // Writes keep the parts of their table alone.
    meters.patch_at(at(1, 2), Meter::patch().count(5)).await.unwrap();
    let mut one = meters.get(at(1, 2)).await.unwrap().unwrap();
    assert_eq!(one.count, 5);
    one.note = "new".into();
    let mut one = meters.replace(&one).await.unwrap();
    assert!(meters.check().await.unwrap().is_clean());
    one.at = NOON;
    one.id = 9;
    meters.move_to(&one, &meters).await.unwrap().wait().await.unwrap();
    assert!(meters.get(at(1, 2)).await.unwrap().is_none());
    let there = meters.get(at(0, 9)).await.unwrap().unwrap();
    assert_eq!((there.at, there.count, there.note.as_str()), (NOON, 5, "new"));
    meters.delete_at(at(0, 9)).await.unwrap();
    assert_eq!(meters.query(window()).count().await.unwrap(), 8);
    assert!(meters.check().await.unwrap().is_clean());
    // The table that an entity has left keeps the end of its move for a while.
    let dropped = meters.drop_before(NOON).await.unwrap();
    assert_eq!((dropped.dropped, dropped.kept), (named(&[29]), named(&[30])));
    assert_eq!(meters.query(window()).count().await.unwrap(), 5);
}

fn named(days: &[u8]) -> Vec<String> {
    days.iter().map(|day| format!("Meters201407{day}")).collect()
}
