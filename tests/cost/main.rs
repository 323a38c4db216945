//! Measures requests and operations of every verb, by the number of copies and lists, for the table
//! in `docs/costs.md`. `ENTABLE_COSTS=write` writes the page again.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod asking;
mod blobs;
mod dated;
mod expiry;
mod lists;
mod queues;
mod remote;
mod report;
mod series;
mod unique;

use std::path::Path;

use entable::{
    Client,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    entity::PathBuilder,
    prelude::*,
    table::Writable,
};

macro_rules! person {
    ($name:ident $(, $index:meta)*) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = "Staff",
            partition_key = "{department}",
            row_key = "empid_{id:06}"
            $(, $index)*
        )]
        struct $name {
            department: String,
            id: u32,
            last_name: String,
            city: String,
            email: String,
            age: i32,
        }

        impl Person for $name {
            fn new(id: u32, name: &str) -> Self {
                Self {
                    department: "Sales".into(),
                    id,
                    last_name: name.into(),
                    city: name.into(),
                    email: format!("{name}{id}@contoso.com"),
                    age: 30,
                }
            }

            fn rename(&mut self, name: &str) {
                let id = self.id;
                *self = Self { age: self.age, ..Self::new(id, name) };
            }

            fn age(&mut self) -> &mut i32 {
                &mut self.age
            }

            fn at(id: u32) -> Point<Self> {
                Self::primary().department("Sales").id(id)
            }

            fn aged(age: i32) -> Self::Patch {
                Self::patch().age(age)
            }

            fn renamed(name: &str) -> Self::Patch {
                let new = Self::new(1, name);
                Self::patch().last_name(new.last_name).city(new.city).email(new.email)
            }
        }
    };
}

trait Person: TableEntity + Writable + Clone {
    fn new(id: u32, name: &str) -> Self;
    /// Changes every key of every index.
    fn rename(&mut self, name: &str);
    fn age(&mut self) -> &mut i32;
    fn at(id: u32) -> Point<Self>;
    fn aged(age: i32) -> Self::Patch;
    fn renamed(name: &str) -> Self::Patch;
}

person!(Alone);
person!(OneCopy, index(ByEmail, row_key = "email_{email:lower}", unique));
person!(
    TwoCopies,
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByName, row_key = "name_{last_name}_{id:06}")
);
person!(OneList, list(ByLastName, row_key = "lastname_{last_name}"));
person!(
    TwoLists,
    list(ByLastName, row_key = "lastname_{last_name}"),
    list(ByCity, row_key = "city_{city}")
);
person!(
    TwoCopiesOneList,
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    list(ByLastName, row_key = "lastname_{last_name}")
);

/// Copies and lists of an entity.
#[derive(Clone, Copy)]
struct Shape {
    copies: usize,
    lists: usize,
}

impl Shape {
    /// Reads before a write whose old rows are not known: one, where there are other rows.
    fn look(self) -> usize {
        usize::from(self.copies + self.lists > 0)
    }
}

/// The requests of a verb, and the operations in them.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    reads: usize,
    writes: usize,
    operations: usize,
}

fn cost(requests: &[Request]) -> Cost {
    let writes = requests.iter().filter(|request| request.is_apply()).count();
    Cost {
        reads: requests.len() - writes,
        writes,
        operations: requests.iter().map(Request::operations).sum(),
    }
}

/// One row of the table: a verb, what it took, and the least that it can take.
struct Line {
    verb: &'static str,
    cost: Cost,
    least: Cost,
}

async fn measure<P: Person>(shape: Shape) -> Vec<Line> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<P>();
    staff.create().await.unwrap();
    let mut lines = Vec::new();
    let mut record = |verb, reads, operations| {
        let least = Cost { reads, writes: 1, operations };
        lines.push(Line { verb, cost: cost(&recorder.take()), least });
    };
    let Shape { copies, lists } = shape;
    let look = shape.look();
    recorder.clear();

    staff.insert(&P::new(1, "Jones")).await.unwrap();
    record("`insert`, the first in its lists", lists, 1 + copies + lists);
    let mut stored = staff.insert(&P::new(2, "Jones")).await.unwrap();
    record("`insert`, lists are there", lists, 1 + copies + lists);

    *stored.age() += 1;
    let mut stored = staff.replace(&stored).await.unwrap();
    record("`replace`, no key changes", 0, 1 + copies);
    stored.rename("Smith");
    staff.replace(&stored).await.unwrap();
    // A key that moves is two rows: one goes, one comes.
    record("`replace`, every key changes", 2 * lists, 1 + 2 * copies + 2 * lists);

    staff.patch_at(P::at(2), P::aged(50)).await.unwrap();
    let reads = usize::from(copies > 0);
    record("`patch_at`, no key changes", reads, 1 + copies);
    staff.patch_at(P::at(2), P::renamed("Brown")).await.unwrap();
    let patched = recorder.requests();
    recorder.clear();
    let least = Cost { reads: look + 2 * lists, writes: 1, operations: 1 + 2 * copies + 2 * lists };
    lines.push(Line { verb: "`patch_at`, every key changes", cost: cost(&patched), least });
    let mut record = |verb, reads, operations| {
        let least = Cost { reads, writes: 1, operations };
        lines.push(Line { verb, cost: cost(&recorder.take()), least });
    };

    staff
        .update(P::at(2), |person| {
            *person.age() += 1;
            Ok(())
        })
        .await
        .unwrap();
    record("`update`, no key changes", 1, 1 + copies);

    staff.insert_or_replace(&P::new(3, "Brown")).await.unwrap();
    record("`insert_or_replace` of a new one", look + lists, 1 + copies + lists);
    let mut person = P::new(3, "Brown");
    *person.age() += 1;
    staff.insert_or_replace(&person).await.unwrap();
    record("`insert_or_replace`, no key changes", look, 1 + copies);
    staff.insert_or_merge(&P::new(3, "Brown")).await.unwrap();
    record("`insert_or_merge`, no key changes", look, 1 + copies);
    staff.replace_any(&person).await.unwrap();
    record("`replace_any`, no key changes", look, 1 + copies);

    let stored = staff.get(P::at(3)).await.unwrap().unwrap();
    recorder.clear();
    staff.delete(&stored).await.unwrap();
    record("`delete`", lists, 1 + copies + lists);
    staff.delete_at(P::at(2)).await.unwrap();
    record("`delete_at`, the last in its lists", look + lists, 1 + copies + lists);

    let mut egt = staff.transaction();
    egt.insert(&P::new(10, "Miller")).unwrap().insert(&P::new(11, "Miller")).unwrap();
    egt.commit().await.unwrap();
    record("`Transaction`, two `insert`s into the same lists", lists, 2 * (1 + copies) + lists);

    let people: Vec<P> = (20..30).map(|id| P::new(id, "Young")).collect();
    staff.bulk().insert_all(&people).await.unwrap().into_result().unwrap();
    record("`Bulk`, ten `insert`s into the same lists", lists, 10 * (1 + copies) + lists);
    lines
}

async fn columns() -> Vec<(&'static str, Vec<Line>)> {
    let shape = |copies, lists| Shape { copies, lists };
    vec![
        ("alone", measure::<Alone>(shape(0, 0)).await),
        ("1 copy", measure::<OneCopy>(shape(1, 0)).await),
        ("2 copies", measure::<TwoCopies>(shape(2, 0)).await),
        ("1 list", measure::<OneList>(shape(0, 1)).await),
        ("2 lists", measure::<TwoLists>(shape(0, 2)).await),
        ("2 copies, 1 list", measure::<TwoCopiesOneList>(shape(2, 1)).await),
    ]
}

fn table(columns: &[(&'static str, Vec<Line>)]) -> String {
    let mut text = String::from(
        "# Cost of every verb\n\n\
         Each cell shows reads + operations for an entity with the given [local](glossary.md#local) copies and\n\
         lists. All operations of a verb are in one entity group transaction, which is one request.\n\
         \n\
         Lists are read in parallel, and unchanged copies are not sent. The copies here hold every field; a\n\
         [partial copy](glossary.md#partial-copy) without the changed field is not sent either. `tests/cost`\n\
         measures the numbers and checks that no verb sends more than the protocol needs.\n\n| verb |",
    );
    for (name, _) in columns {
        text.push_str(&format!(" {name} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for at in 0..columns[0].1.len() {
        text.push_str(&format!("| {} |", columns[0].1[at].verb));
        for (_, lines) in columns {
            let Cost { reads, operations, .. } = lines[at].cost;
            text.push_str(&format!(" {reads} + {operations} |"));
        }
        text.push('\n');
    }
    text
}

#[tokio::test]
async fn every_verb_costs_the_least() {
    let columns = columns().await;
    for (name, lines) in &columns {
        for Line { verb, cost, least } in lines {
            assert_eq!(cost, least, "{verb} with {name}");
        }
    }
}

#[tokio::test]
async fn the_docs_have_the_same_table() {
    let elsewhere = unique::table().await
        + &unique::bulk_section().await
        + &asking::section().await
        + &series::section().await
        + &remote::section().await
        + &lists::section().await
        + &Box::pin(blobs::section()).await
        + &expiry::section().await
        + &dated::section().await
        + &queues::section().await;
    let text = table(&columns().await) + &elsewhere;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/costs.md");
    if std::env::var_os("ENTABLE_COSTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "run with ENTABLE_COSTS=write");
}

/// Reading: one request by a key of any copy, one for the ids of a list, one more for each entity.
#[tokio::test]
async fn reads_cost_the_least() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<TwoCopiesOneList>();
    staff.create().await.unwrap();
    for id in 1..=4 {
        staff.insert(&TwoCopiesOneList::new(id, "Jones")).await.unwrap();
    }
    recorder.clear();
    let path = TwoCopiesOneList::by_email().department("Sales").email("jones1@contoso.com");
    assert!(staff.get(path).await.unwrap().is_some());
    assert_eq!(recorder.take().len(), 1);
    let jones = || TwoCopiesOneList::by_last_name().department("Sales").last_name("Jones");
    assert_eq!(staff.keys(jones()).await.unwrap().len(), 4);
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(staff.query(jones()).collect().await.unwrap().len(), 4);
    assert_eq!(recorder.take().len(), 1 + 4);
    assert!(staff.check().await.unwrap().is_clean());
    assert_eq!(recorder.take().len(), 1, "one scan where everything matches");
    assert_eq!(TwoCopiesOneList::by_name().family().name, "ByName");
}
