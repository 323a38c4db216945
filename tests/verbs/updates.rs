//! Tests `update`: what it sends, and that writers of one row through one client take turns.

use std::time::Duration;

use entable::{
    Client, OutboxOptions, Value, Verb,
    backend::{
        Backend, Embedded, Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind, RetryPolicy},
    },
    prelude::*,
};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByAge, row_key = "age_{age:03}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    age: u8,
    visits: i64,
    nickname: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counters", partition_key = "{name}", row_key = "counter")]
struct Counter {
    name: String,
    count: i64,
    note: Option<String>,
}

fn at() -> Point<Counter> {
    Counter::primary().name("visits")
}

async fn counters(backend: impl Backend + 'static) -> (Recorder, Table<Counter>) {
    let recorder = Recorder::around(backend);
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let counters = client.table::<Counter>();
    counters.create().await.unwrap();
    let counter = Counter { name: "visits".into(), count: 0, note: Some("new".into()) };
    counters.insert(&counter).await.unwrap();
    recorder.clear();
    (recorder, counters)
}

#[tokio::test]
async fn an_update_sends_what_changed() {
    let (recorder, counters) = counters(Memory::new()).await;
    let counted = counters.update(at(), |it| Ok(it.count += 1)).await.unwrap();
    assert_eq!((counted.count, counted.note.as_deref()), (1, Some("new")));
    let requests = recorder.take();
    assert_eq!((requests.len(), requests[1].verbs()), (2, vec![Verb::Merge]));

    let same = counters.update(at(), |it| Ok(it.count += 0)).await.unwrap();
    assert_eq!((same.etag(), same.count), (counted.etag(), 1));
    assert_eq!(recorder.take().len(), 1, "nothing changed: nothing is written");

    counters.update(at(), |it| Ok(it.note = None)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Replace], "no merge removes a property");
    assert_eq!(counters.get(at()).await.unwrap().unwrap().note, None);
    let stored = counters.get(at()).await.unwrap().unwrap();
    assert_eq!(stored.count, 1);
}

#[tokio::test]
async fn an_update_of_a_row_with_the_id_of_its_write_sends_what_changed() {
    let recorder = Recorder::around(Memory::new());
    let policy = RetryPolicy::new().operation_ids(true);
    let client = Client::builder().backend(recorder.clone()).retry(policy).build().unwrap();
    let counters = client.table::<Counter>();
    counters.create().await.unwrap();
    let counter = Counter { name: "visits".into(), count: 0, note: Some("new".into()) };
    counters.insert(&counter).await.unwrap();
    let id = async || {
        let row = client.dynamic("Counters").get("visits", "counter").await.unwrap().unwrap();
        row.get("OpId").and_then(Value::as_bytes).map(<[u8]>::to_vec)
    };
    let first = id().await;
    assert!(first.is_some());
    recorder.clear();
    counters.update(at(), |it| Ok(it.count += 1)).await.unwrap();
    let requests = recorder.take();
    assert_eq!((requests.len(), requests[1].verbs()), (2, vec![Verb::Merge]));
    let second = id().await;
    assert!(second.is_some() && second != first, "the merge writes an id of its own");
    recorder.clear();
    counters.update(at(), |it| Ok(it.count += 0)).await.unwrap();
    assert_eq!(recorder.take().len(), 1, "nothing changed: nothing is written");
    counters.update(at(), |it| Ok(it.note = None)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Replace], "no merge removes a property");
    assert!(id().await.is_some_and(|id| Some(id) != second));
}

#[tokio::test]
async fn copies_follow_an_update() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let don = Employee {
        department: "Sales".into(),
        id: 1,
        age: 34,
        visits: 0,
        nickname: Some("Don".into()),
    };
    staff.insert(&don).await.unwrap();
    let at = || Employee::primary().department("Sales").id(1);
    recorder.clear();
    staff.update(at(), |it| Ok(it.visits += 1)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Merge, Verb::InsertOrReplace]);
    staff.update(at(), |it| Ok(it.age += 1)).await.unwrap();
    assert_eq!(recorder.take()[1].verbs(), [Verb::Merge, Verb::Delete, Verb::Insert]);
    assert!(staff.check().await.unwrap().is_clean());
    let found =
        staff.query(Employee::by_age().department("Sales").age(35)).collect().await.unwrap();
    assert_eq!((found.len(), found[0].visits), (1, 1));
}

async fn five_hundred_tasks_count(backend: impl Backend + 'static) {
    let (recorder, counters) = counters(backend).await;
    let tasks: Vec<_> = (0..500)
        .map(|_| {
            let counters = counters.clone();
            tokio::spawn(async move { counters.update(at(), |it| Ok(it.count += 1)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(counters.get(at()).await.unwrap().unwrap().count, 500);
    assert_eq!(recorder.take().len(), 2 * 500 + 1, "no update lost a race");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_tasks_count_in_memory() {
    five_hundred_tasks_count(Memory::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_tasks_count_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    five_hundred_tasks_count(Embedded::open(directory.path().join("counters.db")).unwrap()).await;
}

/// Writes that read first wait as well: those of entities with copies, whatever their ETag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_read_first_take_turns() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let employee =
        |age| Employee { department: "Sales".into(), id: 1, age, visits: 0, nickname: None };
    staff.insert(&employee(20)).await.unwrap();
    recorder.clear();
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let staff = staff.clone();
            tokio::spawn(async move { staff.insert_or_replace(&employee(20 + n)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(recorder.take().len(), 200);
    assert!(staff.check().await.unwrap().is_clean());
}

#[tokio::test(start_paused = true)]
async fn another_process_is_waited_for_as_often_as_the_option_says() {
    let faults = FaultInjector::around(Memory::new());
    let options = OutboxOptions::default().attempts(3);
    let client = Client::builder().backend(faults.clone()).outbox(options).build().unwrap();
    let counters = client.table::<Counter>();
    counters.create().await.unwrap();
    let counter = Counter { name: "visits".into(), count: 0, note: None };
    counters.insert(&counter).await.unwrap();
    let raced = |times| {
        faults.clear();
        for nth in 0..times {
            let error = Error::new(ErrorKind::PreconditionFailed, "another writer was first");
            faults.inject(RequestKind::Apply, nth, InjectedFault::Before(error));
        }
    };
    let mut tries = 0;
    raced(2);
    let counted = counters.update(at(), |it| {
        tries += 1;
        it.count += 1;
        Ok(())
    });
    assert_eq!(counted.await.unwrap().count, 1);
    assert_eq!(tries, 3);
    raced(3);
    let error = counters.update(at(), |it| Ok(it.count += 1)).await.unwrap_err();
    assert!(error.is_contended());
    assert!(error.message().contains("3 times"), "{error}");
}

/// Counts in a loop whose body updates a row while the loop's own buffer holds updates of `names`, which
/// nobody polls meanwhile. Returns how long the ten steps of the loop took.
async fn count_beside_a_buffer(names: [&'static str; 10]) -> Duration {
    let faults = FaultInjector::around(Memory::new());
    let (_, counters) = counters(faults.clone()).await;
    counters.insert(&Counter { name: "other".into(), count: 0, note: None }).await.unwrap();
    for nth in 0..2_000 {
        faults.inject(RequestKind::Any, nth, InjectedFault::Delay(Duration::from_millis(20)));
    }
    let count = |name| counters.update(Counter::primary().name(name), |it| Ok(it.count += 1));
    let began = Instant::now();
    let mut updates = stream::iter(names).map(count).buffer_unordered(5);
    while let Some(updated) = updates.next().await {
        updated.unwrap();
        count("visits").await.unwrap();
    }
    let elapsed = began.elapsed();
    let counted = names.into_iter().filter(|name| *name == "visits").count() + 10;
    let stored = counters.get(at()).await.unwrap().unwrap();
    assert_eq!(stored.count, i64::try_from(counted).unwrap());
    elapsed
}

#[tokio::test(start_paused = true)]
async fn updates_that_nobody_polls_hold_up_no_other() {
    // An update that waits for its turn gets none while nobody polls it.
    let elapsed = count_beside_a_buffer(["visits"; 10]).await;
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
    // One that has its turn loses it after a second.
    let mixed = std::array::from_fn(|nth| if nth % 2 == 0 { "other" } else { "visits" });
    let elapsed = count_beside_a_buffer(mixed).await;
    assert!((Duration::from_secs(1)..Duration::from_secs(20)).contains(&elapsed), "{elapsed:?}");
}

/// An update that waits for the store keeps the row to itself, however slow the store is.
#[tokio::test(start_paused = true)]
async fn an_update_on_a_slow_store_loses_no_race() {
    let faults = FaultInjector::around(Memory::new());
    let (recorder, counters) = counters(faults.clone()).await;
    for nth in 0..6 {
        faults.inject(RequestKind::Any, nth, InjectedFault::Delay(Duration::from_secs(8)));
    }
    let count = || counters.update(at(), |it| Ok(it.count += 1));
    let (one, two, three) = tokio::join!(count(), count(), count());
    let mut counted = [one, two, three].map(|counted| counted.unwrap().count);
    counted.sort_unstable();
    assert_eq!((counted, recorder.take().len()), ([1, 2, 3], 6));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Gauges", partition_key = "{site}", row_key = "{id:04}")]
struct Gauge {
    site: String,
    id: u32,
    level: f64,
    readings: i32,
}

#[tokio::test]
async fn a_changed_sign_of_zero_is_merged() {
    let client = Client::memory();
    let (gauges, rows) = (client.table::<Gauge>(), client.dynamic("Gauges"));
    gauges.create().await.unwrap();
    let gauge = |level: f64| Gauge { site: "north".into(), id: 1, level, readings: 1 };
    for (before, after) in [(0.0, -0.0), (-0.0, 0.0)] {
        let stored_bits = async || {
            let row = rows.get("north", "0001").await.unwrap().unwrap();
            row.f64("Level").unwrap().to_bits()
        };
        gauges.insert_or_replace(&gauge(before)).await.unwrap();
        let change = |row: &mut DynamicEntity| {
            row.set("Level", after);
            Ok(())
        };
        rows.update("north", "0001", change).await.unwrap();
        assert_eq!(stored_bits().await, f64::to_bits(after), "an untyped row");

        gauges.insert_or_replace(&gauge(before)).await.unwrap();
        let change = |gauge: &mut Gauge| {
            (gauge.level, gauge.readings) = (after, gauge.readings + 1);
            Ok(())
        };
        let updated = gauges.update(Gauge::primary().site("north").id(1), change).await.unwrap();
        assert_eq!(updated.level.to_bits(), f64::to_bits(after));
        assert_eq!(stored_bits().await, f64::to_bits(after), "an entity");
    }
}
