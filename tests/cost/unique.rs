//! Counts the requests of values that are unique across partitions, before and after the answer.

use entable::{
    Client, Error, ErrorKind, OutboxOptions,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "empid_{department}",
    row_key = "{id:06}",
    index(ByEmail, partition_key = "email_{department}", row_key = "{email:lower}", unique),
    index(ByBadge, table = "Badges", partition_key = "{badge}", row_key = "badge", unique, only(age), when = Person::has_badge)
)]
struct Person {
    department: String,
    id: u32,
    email: String,
    badge: String,
    age: i32,
}

impl Person {
    fn has_badge(&self) -> bool {
        !self.badge.is_empty()
    }
}

fn person(id: u32, email: &str, badge: &str) -> Person {
    let (department, email, badge) = ("Sales".into(), email.into(), badge.into());
    Person { department, id, email, badge, age: 30 }
}

/// A verb, the requests before its answer, and those after it.
type Line = (&'static str, usize, usize);

struct Store {
    recorder: Recorder,
    client: Client,
    lines: Vec<Line>,
}

impl Store {
    /// The background begins when the test waits: on one thread nothing else lets it.
    async fn record(&mut self, verb: &'static str) {
        let before = self.recorder.take().len();
        self.client.wait_for_copies().await;
        let after = self.recorder.take().len();
        self.lines.push((verb, before, after));
    }
}

async fn measured() -> Vec<Line> {
    let recorder = Recorder::around(Memory::new());
    let outbox = OutboxOptions::default().copies_before_answer(false);
    let client = Client::builder().backend(recorder.clone()).outbox(outbox).build().unwrap();
    let staff = client.table::<Person>();
    staff.create().await.unwrap();
    let first = staff.insert(&person(1, "first@a.com", "")).await.unwrap();
    client.wait_for_copies().await;
    recorder.clear();
    let mut store = Store { recorder, client: client.clone(), lines: Vec::new() };

    let mut stored = staff.insert(&person(2, "don@a.com", "")).await.unwrap();
    store.record("`insert`").await;
    staff.insert(&person(3, "jun@a.com", "b3")).await.unwrap();
    store.record("`insert` with two values").await;
    stored.age = 31;
    let mut stored = staff.replace(&stored).await.unwrap();
    store.record("`replace`, the value stays").await;
    stored.email = "donald@a.com".into();
    staff.replace(&stored).await.unwrap();
    store.record("`replace`, another value").await;
    assert!(staff.insert(&person(4, "jun@a.com", "")).await.unwrap_err().is_unique_violation());
    store.record("`insert`, the value is taken").await;
    let mut egt = client.transaction();
    egt.insert(&person(5, "e5@a.com", "")).unwrap().insert(&person(6, "e6@a.com", "")).unwrap();
    egt.commit().await.unwrap();
    store.record("`Transaction`, two `insert`s").await;
    staff.delete(&first).await.unwrap();
    store.record("`delete`").await;
    let path = Person::by_email().department("Sales").email("jun@a.com");
    assert_eq!(staff.get(path).await.unwrap().unwrap().id, 3);
    store.record("`get` by the value").await;
    store.lines.extend(claims_in_the_way().await);
    store.lines
}

/// Counts the requests of an insert whose value a claim of the same entity holds: first one of a writer
/// that died, then one that the same client left behind.
async fn claims_in_the_way() -> Vec<Line> {
    let outbox = || OutboxOptions::default().copies_before_answer(false);
    let fault = FaultInjector::around(Memory::new());
    let recorder = Recorder::around(fault.clone());
    let dying = Client::builder().backend(fault.clone()).outbox(outbox()).build().unwrap();
    let client = Client::builder().backend(recorder.clone()).outbox(outbox()).build().unwrap();
    let staff = client.table::<Person>();
    staff.create().await.unwrap();
    for (id, client) in [(1, &dying), (2, &client)] {
        let first = person(id, &format!("first{id}@a.com"), "");
        client.table::<Person>().insert(&first).await.unwrap().wait_for_copies().await.unwrap();
    }
    let mut lines = Vec::new();
    for (writer, verb) in [
        (&dying, "`insert`, a writer that died holds the value: fails after 16 tries"),
        (&client, "`insert`, a write that this client gave up holds the value"),
    ] {
        let person = person(3, &format!("{}@a.com", lines.len()), "");
        // The claim and the reservation are written, nothing after them.
        for request in 2..40 {
            let lost = Error::new(ErrorKind::Backend, "connection lost");
            fault.inject(RequestKind::Any, request, InjectedFault::Before(lost));
        }
        writer.table::<Person>().insert(&person).await.unwrap_err();
        fault.clear();
        recorder.clear();
        let written = staff.insert(&person).await;
        let mut store = Store { recorder: recorder.clone(), client: client.clone(), lines };
        store.record(verb).await;
        lines = store.lines;
        match lines.len() {
            1 => assert!(written.unwrap_err().is_contended()),
            _ => assert_eq!(written.unwrap().id, 3),
        }
    }
    lines
}

/// Returns the section of `docs/costs.md` about unique values.
pub(super) async fn table() -> String {
    let mut text = String::from(
        "\n## Values that are unique across partitions\n\n\
         Requests of a write to a partition that the process has written before. The first write takes 2 more for the\n\
         [registration](glossary.md#registration). The later requests of a [worker](glossary.md#worker) are not counted.\n\
         The memory and embedded stores answer after all requests, unless you set `copies_before_answer(false)`.\n\n\
         | write | before the answer | after the answer |\n|---|---|---|\n",
    );
    for (verb, before, after) in measured().await {
        text.push_str(&format!("| {verb} | {before} | {after} |\n"));
    }
    text
}

#[tokio::test]
async fn a_unique_value_costs_the_least() {
    let least = [
        ("`insert`", 3, 2),
        // The reservations side by side.
        ("`insert` with two values", 4, 3),
        ("`replace`, the value stays", 2, 2),
        ("`replace`, another value", 4, 2),
        ("`insert`, the value is taken", 5, 0),
        ("`Transaction`, two `insert`s", 4, 4),
        ("`delete`", 2, 1),
        ("`get` by the value", 1, 0),
        // One attempt, then a look at the claim before each further one.
        ("`insert`, a writer that died holds the value: fails after 16 tries", 20, 0),
        ("`insert`, a write that this client gave up holds the value", 8, 2),
    ];
    assert_eq!(measured().await, least);
}

/// Which entities of a bulk insert are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Refused {
    None,
    One,
    Half,
    All,
}

impl Refused {
    fn has(self, index: u32, total: u32) -> bool {
        match self {
            Self::None => false,
            Self::One => index == total / 2,
            Self::Half => index.is_multiple_of(2),
            Self::All => true,
        }
    }
}

/// Why an entity is refused.
#[derive(Debug, Clone, Copy)]
enum Reason {
    /// It exists, with the value that it is inserted with.
    Exists,
    /// Another entity has its value.
    Taken,
}

/// Returns the requests of a bulk insert of `total` entities, and how many of them it refused.
async fn bulk_insert(total: u32, refused: Refused, reason: Reason) -> (usize, usize) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Person>();
    staff.create().await.unwrap();
    let email = |index: u32| format!("{index}@a.com");
    staff.insert(&person(500_000, "first@a.com", "")).await.unwrap();
    let id = |index| match reason {
        Reason::Exists => index,
        Reason::Taken => 900_000 + index,
    };
    let before = (0..total).filter(|index| refused.has(*index, total));
    let before = before.map(|index| person(id(index), &email(index), ""));
    staff.bulk().insert_all(before).await.unwrap().into_result().unwrap();
    client.wait_for_copies().await;
    recorder.clear();
    let all = (0..total).map(|index| person(index, &email(index), ""));
    let report = staff.bulk().insert_all(all).await.unwrap();
    client.wait_for_copies().await;
    let requests = recorder.take().len();
    for failure in &report.failed {
        assert!(refused.has(u32::try_from(failure.index).unwrap(), total), "{failure:?}");
        match reason {
            Reason::Exists => assert!(failure.error.is_conflict(), "{failure:?}"),
            Reason::Taken => assert!(failure.error.is_unique_violation(), "{failure:?}"),
        }
    }
    assert_eq!(report.done + report.failed.len() as u64, u64::from(total));
    // Nothing that was reserved for a refused entity stays.
    assert!(staff.check().await.unwrap().is_clean());
    (requests, report.failed.len())
}

/// Sizes of the bulk inserts that are measured, and the requests of one without refused entities.
const BULKS: [(u32, usize); 3] = [(40, 122), (200, 610), (1_000, 3_042)];

/// Returns the section of `docs/costs.md` about bulk inserts that find entities and values there already.
pub(super) async fn bulk_section() -> String {
    let mut text = String::from(
        "\n`bulk().insert_all(..)` of entities with one unique value, all in one partition, including the requests after\n\
         the answer. If an entity is refused, the rest of its transaction is sent again with the values already\n\
         reserved. Repeating an import after a crash costs no more than one `insert` for each entity.\n\n\
         | entities | all new | half exist | all exist | half the values are taken | all are taken |\n\
         |---|---|---|---|---|---|\n",
    );
    for (total, new) in BULKS {
        text.push_str(&format!("| {total} | {new} |"));
        for reason in [Reason::Exists, Reason::Taken] {
            for refused in [Refused::Half, Refused::All] {
                text.push_str(&format!(" {} |", bulk_insert(total, refused, reason).await.0));
            }
        }
        text.push('\n');
    }
    text
}

/// A refused entity costs a bulk insert no more than it costs alone, whatever else is in its group.
#[tokio::test]
async fn refused_entities_cost_a_bulk_insert_no_more_than_alone() {
    for (reason, alone) in [(Reason::Exists, 9), (Reason::Taken, 5)] {
        assert_eq!(bulk_insert(1, Refused::All, reason).await, (alone, 1), "{reason:?}");
        for (total, new) in BULKS {
            assert_eq!(bulk_insert(total, Refused::None, reason).await, (new, 0), "{total}");
            for refused in [Refused::One, Refused::Half, Refused::All] {
                let (requests, failed) = bulk_insert(total, refused, reason).await;
                let written = new * (total as usize - failed) / total as usize;
                let most = written + alone * failed;
                assert!(requests <= most, "{reason:?}, {refused:?} of {total}: {requests}");
            }
        }
    }
}
