//! Counts the requests and operations of series and wide entities.

use entable::{
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "day_{employee:06}")]
struct Day {
    department: String,
    employee: u32,
    #[table(series("Slot{:03}"))]
    slots: [Option<i64>; 24],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "year_{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    #[table(series("Slot{:03}"))]
    slots: [Option<i64>; 365],
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Year)]
struct Owner {
    employee: u32,
}

/// Reads, transactions, and the operations in them.
type Cost = (usize, usize, usize);

/// A measured call, what it costs with a series in one row and with one in two parts, and what it has
/// to cost.
struct Line {
    call: &'static str,
    costs: [Cost; 2],
    least: [Cost; 2],
}

fn cost(requests: &[Request]) -> Cost {
    let writes = requests.iter().filter(|request| request.is_apply()).count();
    (requests.len() - writes, writes, requests.iter().map(Request::operations).sum())
}

macro_rules! measure {
    ($name:ident, $last:expr) => {{
        let recorder = Recorder::around(Memory::new());
        let client = Client::builder().backend(recorder.clone()).build().unwrap();
        let rows = client.table::<$name>();
        rows.create().await.unwrap();
        let new =
            |employee| $name { department: "Sales".into(), employee, slots: [Some(1); $last + 1] };
        let at = |employee| $name::primary().department("Sales").employee(employee);
        let mut costs = Vec::new();
        recorder.clear();
        let mut record = |call: &'static str| costs.push((call, cost(&recorder.take())));
        rows.insert(&new(1)).await.unwrap();
        record("`insert`");
        let mut stored = rows.get(at(1)).await.unwrap().unwrap();
        record("`get`");
        stored.slots[0] = Some(2);
        let stored = rows.replace(&stored).await.unwrap();
        record("`replace`");
        rows.patch_at(at(1), $name::patch().slots($last, 3)).await.unwrap();
        record("`patch_at` of one slot");
        let both = $name::patch().slots(0, 3).slots($last, 4);
        rows.patch_at(at(1), both).await.unwrap();
        record("`patch_at` of the first and the last slot");
        let add = |entity: &mut $name| {
            entity.slots[$last] = Some(5);
            Ok(())
        };
        rows.update(at(1), add).await.unwrap();
        record("`update` of one slot");
        assert!(rows.replace(&stored).await.unwrap_err().is_precondition_failed());
        record("`replace` of an entity that changed");
        rows.insert_or_replace(&new(1)).await.unwrap();
        record("`insert_or_replace`");
        rows.insert_or_merge(&new(1)).await.unwrap();
        record("`insert_or_merge`");
        let stored = rows.replace_any(&new(1)).await.unwrap();
        record("`replace_any`");
        rows.delete(&stored).await.unwrap();
        record("`delete`");
        for employee in 1..=3 {
            rows.insert(&new(employee)).await.unwrap();
        }
        recorder.clear();
        let all = rows.query($name::primary().department("Sales"));
        assert_eq!(all.collect().await.unwrap().len(), 3);
        record("a query of 3 entities");
        assert_eq!(all.count().await.unwrap(), 3);
        record("`count` of 3 entities");
        assert!(rows.delete_at(at(1)).await.unwrap());
        record("`delete_at`");
        let mut moved = rows.get(at(2)).await.unwrap().unwrap();
        moved.employee = 9;
        recorder.clear();
        rows.replace(&moved).await.unwrap();
        record("`replace` under another RowKey");
        costs
    }};
}

async fn lines() -> Vec<Line> {
    let one: Vec<(&'static str, Cost)> = measure!(Day, 23);
    let two: Vec<(&'static str, Cost)> = measure!(Year, 364);
    let least = |call: &str| match call {
        "`get`" => [(1, 0, 0), (2, 0, 0)],
        "`patch_at` of one slot" => [(0, 1, 1), (0, 1, 1)],
        // The id of the write in both parts would make a torn entity look whole: it is read first.
        "`patch_at` of the first and the last slot" => [(0, 1, 1), (2, 1, 2)],
        "`update` of one slot" => [(1, 1, 1), (2, 1, 2)],
        "`insert_or_merge`" => [(0, 1, 1), (2, 1, 2)],
        "a query of 3 entities" | "`count` of 3 entities" => [(1, 0, 0), (1, 0, 0)],
        "`replace` under another RowKey" => [(0, 1, 2), (0, 1, 4)],
        _ => [(0, 1, 1), (0, 1, 2)],
    };
    let both = one.into_iter().zip(two);
    let lines = both.map(|((call, one), (other, two))| {
        assert_eq!(call, other);
        Line { call, costs: [one, two], least: least(call) }
    });
    lines.collect()
}

/// The section of `docs/costs.md`.
pub(crate) async fn section() -> String {
    let mut text = String::from(
        "\n## Series and wide entities\n\n\
         Reads + operations, all of them in one transaction. `update` of a wide entity also checks the ETag of the\n\
         part that it does not change.\n\n\
         | call | 24 slots in a row | 365 slots in 2 parts |\n|---|---|---|\n",
    );
    for Line { call, costs: [one, two], .. } in lines().await {
        let cell = |(reads, _, operations): Cost| format!("{reads} + {operations}");
        text.push_str(&format!("| {call} | {} | {} |\n", cell(one), cell(two)));
    }
    text
}

#[tokio::test]
async fn series_and_wide_entities_cost_the_least() {
    for Line { call, costs, least } in lines().await {
        assert_eq!(costs, least, "{call}");
    }
}

/// A projection is read from the parts that hold its fields.
#[tokio::test]
async fn a_projection_reads_the_parts_of_its_fields() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let years = client.table::<Year>();
    years.create().await.unwrap();
    let new = Year { department: "Sales".into(), employee: 1, slots: [None; 365] };
    years.insert(&new).await.unwrap();
    recorder.clear();
    let at = Year::primary().department("Sales").employee(1);
    assert_eq!(years.get_as::<Owner>(at).await.unwrap().unwrap().employee, 1);
    assert_eq!(cost(&recorder.take()), (1, 0, 0));
}
