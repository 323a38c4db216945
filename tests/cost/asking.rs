//! Counts the requests of what asks for rows without reading them, deletes them, or merges them.

use entable::{
    Client,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};

use crate::{Alone, OneList, Person, TwoCopies};

/// A measured call, and the reads and transactions that it has to cost.
struct Line {
    call: &'static str,
    cost: (usize, usize),
    least: (usize, usize),
}

fn cost(requests: &[Request]) -> (usize, usize) {
    let writes = requests.iter().filter(|request| request.is_apply()).count();
    (requests.len() - writes, writes)
}

async fn store<P: Person>(rows: u32) -> (Client, Recorder, Table<P>) {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let staff = client.table::<P>();
    staff.create().await.unwrap();
    let people = (1..=rows).map(|id| P::new(id, "Jones"));
    staff.bulk().insert_all(people).await.unwrap().into_result().unwrap();
    recorder.clear();
    (client, recorder, staff)
}

async fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    let (client, recorder, staff) = store::<Alone>(2_500).await;
    let mut record = |call, least| {
        lines.push(Line { call, cost: cost(&recorder.take()), least });
    };
    let sales = staff.query(Alone::primary().department("Sales"));
    assert_eq!(sales.count().await.unwrap(), 2_500);
    record("`count` of 2,500 entities", (3, 0));
    assert!(sales.exists().await.unwrap());
    record("`exists`", (1, 0));
    let departments = ["Sales", "Marketing", "Research", "Legal"];
    let paths = departments.map(|name| Alone::primary().department(name));
    let merged = staff.query_many(paths).in_key_order().page_size(50);
    assert_eq!(merged.page(None).await.unwrap().items.len(), 50);
    record("`in_key_order().page(..)` of 4 partitions", (4, 0));
    assert_eq!(client.partition_report("Staff").await.unwrap().rows, 2_500);
    record("`partition_report` of 2,500 rows", (3, 0));
    assert_eq!(sales.delete_all().await.unwrap().done, 2_500);
    record("`delete_all` of 2,500 entities", (3, 25));

    lines.extend(transfers().await);
    let (_, recorder, staff) = store::<TwoCopies>(100).await;
    let sales = staff.query(TwoCopies::primary().department("Sales"));
    assert_eq!(sales.delete_all().await.unwrap().done, 100);
    // 300 rows in transactions of 33 entities.
    let least = (1, 4);
    lines.push(Line {
        call: "`delete_all` of 100 entities with 2 copies",
        cost: cost(&recorder.take()),
        least,
    });

    let (_, recorder, staff) = store::<OneList>(90).await;
    let list = staff.query(OneList::by_last_name().department("Sales").last_name("Jones"));
    assert_eq!(list.count().await.unwrap(), 90);
    let least = (1, 0);
    lines.push(Line { call: "`count` of a local list", cost: cost(&recorder.take()), least });
    lines
}

/// Transfers of an entity without copies to another table.
async fn transfers() -> Vec<Line> {
    let (client, recorder, staff) = store::<Alone>(1).await;
    let former = client.table_named::<Alone>("Former");
    former.create().await.unwrap();
    let mut lines = Vec::new();
    for (call, least) in [
        ("`transfer` to a table", (1, 2)),
        // Insertion, replacement and deletion.
        ("`transfer` to a table that has the entity", (3, 3)),
    ] {
        staff.insert_or_replace(&Alone::new(1, "Jones")).await.unwrap();
        recorder.clear();
        assert!(staff.transfer(Alone::at(1), &former).await.unwrap());
        lines.push(Line { call, cost: cost(&recorder.take()), least });
    }
    lines
}

/// The section of `docs/costs.md`.
pub(crate) async fn section() -> String {
    let mut text = String::from(
        "\n## Asking and clearing\n\n\
         Requests. The service cannot count rows, so `count` reads the keys of all rows, 1,000 per request.\n\n\
         | call | reads | transactions |\n|---|---|---|\n",
    );
    for Line { call, cost: (reads, writes), .. } in lines().await {
        text.push_str(&format!("| {call} | {reads} | {writes} |\n"));
    }
    text
}

#[tokio::test]
async fn asking_and_clearing_cost_the_least() {
    for Line { call, cost, least } in lines().await {
        assert_eq!(cost, least, "{call}");
    }
}
