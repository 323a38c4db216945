//! Writes and finds transactions, each of which has to be stored as a whole or not at all.

use std::collections::BTreeMap;

use entable::{
    Batch, Filter, Operation, Row, ValueRef,
    backend::{Backend, Embedded, ScanRequest},
};

pub(crate) const TABLE: &str = "Ledger";
pub(crate) const WRITERS: usize = 4;

/// How many rows the transaction of that number has beside the head.
fn size(number: i64) -> i64 {
    1 + number * 7 % 20
}

/// Transaction `number` of a writer: some new rows, and the head that says which came last.
pub(crate) fn transaction(writer: usize, number: i64) -> Batch {
    let partition = format!("writer_{writer}");
    let filler = "x".repeat(usize::try_from(number * 37 % 900).unwrap());
    let row = |row_key: &str| {
        let mut row = Row::build(&partition, row_key);
        row.put("Number", ValueRef::Int64(number));
        row.put("Filler", ValueRef::String(&filler));
        // Many transactions bring a layout of their own, which a crash must not part from its rows.
        row.put("EntityType", ValueRef::String(&format!("Type{}", number % 500 / 20)));
        row.put(&format!("Of{}", number % 500), ValueRef::Boolean(true));
        row.finish().unwrap()
    };
    let mut batch = Batch::new(TABLE);
    batch.push(Operation::insert_or_replace(row("head"))).unwrap();
    for part in 0..size(number) {
        batch.push(Operation::insert(row(&format!("row_{number:010}_{part:02}")))).unwrap();
    }
    batch
}

/// All rows of the store.
pub(crate) async fn rows(store: &Embedded, table: &str) -> entable::Result<Vec<Row>> {
    let filter = Filter::Constant(true);
    let mut rows = Vec::new();
    let mut from = None;
    loop {
        let scan =
            ScanRequest { table, filter: &filter, select: None, top: None, from: from.as_ref() };
        let page = store.scan(scan).await?;
        from.clone_from(&page.next);
        rows.extend(page.into_rows()?);
        if from.is_none() {
            return Ok(rows);
        }
    }
}

/// How many transactions each writer has in the store; panics where one is not whole.
pub(crate) async fn transactions(store: &Embedded) -> BTreeMap<usize, i64> {
    let rows = rows(store, TABLE).await.unwrap();
    (0..WRITERS)
        .map(|writer| {
            let partition = format!("writer_{writer}");
            let mut found: BTreeMap<i64, i64> = BTreeMap::new();
            let mut head = -1;
            for row in rows.iter().filter(|row| row.partition_key() == partition) {
                let Some(ValueRef::Int64(number)) = row.get("Number").unwrap() else {
                    panic!("a row without its number")
                };
                match row.row_key() {
                    "head" => head = number,
                    _ => *found.entry(number).or_default() += 1,
                }
            }
            for (number, count) in &found {
                assert_eq!(*count, size(*number), "transaction {number} of {partition} is cut");
            }
            let count = i64::try_from(found.len()).unwrap();
            assert_eq!(head, count - 1, "the head of {partition} is of another transaction");
            assert_eq!(found.keys().next_back().copied().unwrap_or(-1), head);
            (writer, count)
        })
        .collect()
}
