//! Reads the newest entries first: a log tail of an employee's expenses.
//!
//! A query returns rows in the order of their keys, and the first few of them cheaply; there is no
//! query for the last few. So the key holds the time inverted (`desc`): later times sort first.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::prelude::*;
use time::{OffsetDateTime, macros::datetime};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Expenses",
    partition_key = "{employee:06}",
    // Two expenses may have one time. The number makes their keys different, and descends as the time does.
    row_key = "{at:desc}_{number:desc}"
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
    let (hour, minute, second) = FIRST.to_hms();
    let day = FIRST.date();
    println!("{day}, {hour:02}:{minute:02}:{second:02} UTC, has the RowKey {}", stored.row_key());
    assert_eq!(stored.row_key(), "2519936321679999999_4294967294");
    let rest = (2..=500).map(|number| Expense {
        employee: 7,
        at: FIRST + time::Duration::minutes(i64::from(number) / 2),
        number,
        amount: f64::from(number),
    });
    expenses.bulk().insert_all(rest).await?.into_result()?;

    // The ten newest expenses: ten rows are read, however many the partition has.
    let all = || Expense::primary().employee(7);
    let newest = expenses.query(all()).take(10);
    assert_eq!(newest.explain().top, Some(10));
    let found = newest.collect().await?;
    println!("the newest: {:?}", found.iter().map(|e| e.number).collect::<Vec<_>>());
    assert_eq!(found.len(), 10);
    assert_eq!(found.first().map(|expense| expense.number), Some(500));
    // Two expenses have one time: of them, too, the later number comes first.
    assert!(found.windows(2).any(|pair| matches!(pair, [a, b] if a.at == b.at)));
    assert!(found.is_sorted_by(|a, b| (a.at, a.number) > (b.at, b.number)));

    // The expenses of an hour, newest first. Bounds are times; the path inverts them for the keys.
    let hour = FIRST + time::Duration::hours(1)..FIRST + time::Duration::hours(2);
    let found = expenses.query(all().at_range(hour.clone())).collect().await?;
    println!("in one hour: {} expenses", found.len());
    assert_eq!(found.len(), 120);
    assert!(found.iter().all(|expense| hour.contains(&expense.at)));

    // Old expenses are a range too. It is read page by page, and deleted in transactions of a hundred.
    let old = expenses.query(all().at_range(..FIRST + time::Duration::hours(3)));
    let report = old.delete_all().await?.into_result()?;
    println!("deleted {} old expenses in {} requests", report.done, report.requests);
    assert_eq!(report.done, 359);
    assert_eq!(expenses.query(all()).collect().await?.len(), 141);
    Ok(())
}
