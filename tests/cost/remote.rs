//! Counts the requests of writes with an index in another partition, before and after the answer.

use entable::{
    Client, OutboxOptions,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};

/// An entity whose copy in another partition holds all fields but one.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "empid_{department}",
    row_key = "{id:06}",
    index(
        ByEmail,
        partition_key = "email_{email:lower}",
        row_key = "{department}_{id:06}",
        except(room)
    )
)]
struct Person {
    department: String,
    id: u32,
    email: String,
    age: i32,
    room: i32,
}

impl Person {
    fn new(id: u32, email: &str) -> Self {
        Self { department: "Sales".into(), id, email: email.into(), age: 30, room: 1 }
    }

    fn at(id: u32) -> Point<Self> {
        Self::primary().department("Sales").id(id)
    }
}

/// A verb, the reads before its answer, all requests before it, those after it, and those of a worker
/// that confirms.
type Line = (&'static str, [usize; 4]);

struct Store {
    recorder: Recorder,
    client: Client,
    lines: Vec<Line>,
    /// The rows of open work that earlier verbs left to a worker.
    was_open: usize,
}

impl Store {
    async fn open_rows(&self) -> usize {
        let open = Keys::partition("empid_Sales").prefix("~e2_");
        let rows = self.client.dynamic("Staff").query(open).collect().await.unwrap().len();
        self.recorder.clear();
        rows
    }

    /// The background begins when the test waits: on one thread nothing else lets it.
    async fn record(&mut self, verb: &'static str) {
        let before = self.recorder.take();
        let reads = before.iter().filter(|request| !Request::is_apply(request)).count();
        self.client.wait_for_copies().await;
        let after = self.recorder.take().len();
        let open = self.open_rows().await;
        let is_later = open > self.was_open;
        self.was_open = open;
        self.lines.push((verb, [reads, before.len() - reads, after, usize::from(is_later)]));
    }
}

async fn measured() -> Vec<Line> {
    let recorder = Recorder::around(Memory::new());
    let outbox = OutboxOptions::default().copies_before_answer(false);
    let client = Client::builder().backend(recorder.clone()).outbox(outbox).build().unwrap();
    let staff = client.table::<Person>();
    staff.create().await.unwrap();
    // Each verb has an entity of its own: work that waits for a worker costs later writes of its entity.
    for id in 1..=7 {
        staff.insert(&Person::new(id, &format!("p{id}@a.com"))).await.unwrap();
    }
    client.wait_for_copies().await;
    let read = async |id| staff.get(Person::at(id)).await.unwrap().unwrap();
    let [mut older, mut renamed, gone] = [read(1).await, read(2).await, read(3).await];
    recorder.clear();
    let (lines, client) = (Vec::new(), client.clone());
    let mut store = Store { recorder, client: client.clone(), lines, was_open: 0 };

    staff.insert(&Person::new(20, "new@a.com")).await.unwrap();
    store.record("`insert`").await;
    older.age = 31;
    staff.replace(&older).await.unwrap();
    store.record("`replace`, the key stays").await;
    renamed.email = "renamed@a.com".into();
    staff.replace(&renamed).await.unwrap();
    store.record("`replace`, another key").await;
    staff.patch_at(Person::at(4), Person::patch().age(32)).await.unwrap();
    store.record("`patch_at` of a field of the copy").await;
    staff.patch_at(Person::at(5), Person::patch().room(7)).await.unwrap();
    store.record("`patch_at` of another field").await;
    staff
        .update(Person::at(6), |person| {
            person.age += 1;
            Ok(())
        })
        .await
        .unwrap();
    store.record("`update`, the key stays").await;
    staff.insert_or_replace(&Person::new(21, "jun@a.com")).await.unwrap();
    store.record("`insert_or_replace` of a new one").await;
    staff.delete(&gone).await.unwrap();
    store.record("`delete`").await;
    staff.delete_at(Person::at(7)).await.unwrap();
    store.record("`delete_at`").await;
    let mut egt = client.transaction();
    egt.insert(&Person::new(30, "e5@a.com")).unwrap().insert(&Person::new(31, "e6@a.com")).unwrap();
    egt.commit().await.unwrap();
    store.record("`Transaction`, two `insert`s").await;
    let path = Person::by_email().email("e5@a.com");
    let found = staff.query(path).select::<Age>().collect().await.unwrap();
    assert_eq!(found.iter().map(|person| person.age).collect::<Vec<_>>(), [30]);
    store.record("a query of the index").await;
    store.lines
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Person)]
struct Age {
    id: u32,
    age: i32,
}

/// Returns the section of `docs/costs.md` about an index in another partition.
pub(super) async fn section() -> String {
    let mut text = String::from(
        "\n## With an index in another partition\n\n\
         Requests of a write to a partition that the process has written before, for an entity with one copy in another\n\
         partition that is not `unique`. The first write takes 2 more for the [registration](glossary.md#registration).\n\
         Before the answer: reads + transactions. \"later\": a [worker](glossary.md#worker) confirms the deletion of the\n\
         old copy. The memory and embedded stores answer after all requests, unless you set `copies_before_answer(false)`.\n\n\
         | verb | before the answer | after the answer |\n|---|---|---|\n",
    );
    for (verb, [reads, writes, after, later]) in measured().await {
        let later = if later > 0 { ", later" } else { "" };
        text.push_str(&format!("| {verb} | {reads} + {writes} | {after}{later} |\n"));
    }
    text
}

#[tokio::test]
async fn an_index_in_another_partition_costs_the_least() {
    let least = [
        // The transaction; then the copy, and the record of it.
        ("`insert`", [0, 1, 2, 0]),
        // The copy's ETag is read before the commit.
        ("`replace`, the key stays", [1, 1, 2, 0]),
        ("`replace`, another key", [1, 1, 2, 1]),
        ("`patch_at` of a field of the copy", [2, 1, 2, 0]),
        ("`patch_at` of another field", [0, 1, 0, 0]),
        ("`update`, the key stays", [2, 1, 2, 0]),
        ("`insert_or_replace` of a new one", [1, 1, 2, 0]),
        ("`delete`", [1, 1, 1, 1]),
        ("`delete_at`", [2, 1, 1, 1]),
        ("`Transaction`, two `insert`s", [0, 1, 4, 0]),
        ("a query of the index", [1, 0, 0, 0]),
    ];
    assert_eq!(measured().await, least);
}
