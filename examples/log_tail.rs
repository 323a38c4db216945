//! The newest entries first: expenses of an employee, as they come in.
//!
//! A query gives rows in the order of their keys, and the first few of them cheaply; there is no
//! "last few". So the key counts the time down.

use entable::prelude::*;
use time::{OffsetDateTime, macros::datetime};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Expenses",
    partition_key = "{employee:06}",
    // Two expenses may come in at the same time: the number tells them apart.
    row_key = "{at:desc}_{number:06}"
)]
struct Expense {
    employee: u32,
    at: OffsetDateTime,
    number: u32,
    amount: f64,
}

const FIRST: OffsetDateTime = datetime!(2014-08-22 00:50:32 UTC);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let expenses: Table<Expense> = client.table();
    expenses.create().await?;

    let first = Expense { employee: 7, at: FIRST, number: 1, amount: 1.0 };
    let stored = expenses.insert(&first).await?;
    assert_eq!(stored.row_key(), "2519936321679999999_000001");
    let rest = (2..=500).map(|number| Expense {
        employee: 7,
        at: FIRST + time::Duration::minutes(i64::from(number) / 2),
        number,
        amount: f64::from(number),
    });
    expenses.bulk().insert_all(rest).await?.into_result()?;

    // The ten newest: ten rows are read, however many there are.
    let all = || Expense::primary().employee(7);
    let newest = expenses.query(all()).take(10);
    assert_eq!(newest.explain().top, Some(10));
    let found = newest.collect().await?;
    assert_eq!(found.len(), 10);
    assert!(found.is_sorted_by(|a, b| a.at >= b.at));
    assert_eq!(found.first().map(|expense| expense.number), Some(500));

    // Those of an hour, newest first. Bounds are given as times; the keys turn them round.
    let hour = FIRST + time::Duration::hours(1)..FIRST + time::Duration::hours(2);
    let found = expenses.query(all().at_range(hour.clone())).collect().await?;
    assert_eq!(found.len(), 120);
    assert!(found.iter().all(|expense| hour.contains(&expense.at)));

    // Old ones go page by page, by their keys.
    let old = expenses.query(all().at_range(..FIRST + time::Duration::hours(3)));
    let report = expenses.bulk().delete_all(old.collect().await?).await?.into_result()?;
    assert_eq!(report.done, 359);
    assert_eq!(expenses.query(all()).collect().await?.len(), 141);
    Ok(())
}
