//! What values cost that are unique across partitions: requests before the answer, and after.

use entable::{
    Client,
    backend::{Memory, layer::Recorder},
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

/// What was done, the requests before the answer, and those after it.
type Line = (&'static str, usize, usize);

struct Store {
    recorder: Recorder,
    client: Client,
    lines: Vec<Line>,
}

impl Store {
    /// The background begins when the test waits: on one thread nothing else lets it.
    async fn told(&mut self, verb: &'static str) {
        let before = self.recorder.take().len();
        self.client.wait_for_copies().await;
        let after = self.recorder.take().len();
        self.lines.push((verb, before, after));
    }
}

async fn measured() -> Vec<Line> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<Person>();
    staff.create().await.unwrap();
    let first = staff.insert(&person(1, "first@a.com", "")).await.unwrap();
    client.wait_for_copies().await;
    recorder.clear();
    let mut store = Store { recorder, client: client.clone(), lines: Vec::new() };

    let mut stored = staff.insert(&person(2, "don@a.com", "")).await.unwrap();
    store.told("`insert`").await;
    staff.insert(&person(3, "jun@a.com", "b3")).await.unwrap();
    store.told("`insert` with two values").await;
    stored.age = 31;
    let mut stored = staff.replace(&stored).await.unwrap();
    store.told("`replace`, the value stays").await;
    stored.email = "donald@a.com".into();
    staff.replace(&stored).await.unwrap();
    store.told("`replace`, another value").await;
    assert!(staff.insert(&person(4, "jun@a.com", "")).await.unwrap_err().is_unique_violation());
    store.told("`insert`, the value is taken").await;
    let mut egt = client.transaction();
    egt.insert(&person(5, "e5@a.com", "")).unwrap().insert(&person(6, "e6@a.com", "")).unwrap();
    egt.commit().await.unwrap();
    store.told("`Transaction`, two `insert`s").await;
    staff.delete(&first).await.unwrap();
    store.told("`delete`").await;
    let path = Person::by_email().department("Sales").email("jun@a.com");
    assert_eq!(staff.get(path).await.unwrap().unwrap().id, 3);
    store.told("`get` by the value").await;
    store.lines
}

/// The table in `docs/costs.md`.
pub(super) async fn table() -> String {
    let mut text = String::from(
        "\n## Values that are unique across partitions\n\n\
         Requests, where the partition is in the directory: what a worker confirms later not counted.\n\n\
         | a write | before the answer | after |\n|---|---|---|\n",
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
    ];
    assert_eq!(measured().await, least);
}
