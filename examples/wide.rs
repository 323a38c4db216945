//! Keeps a count for each day of a year: 365 values, more than the 252 properties of a row.
//!
//! The entity is two rows, written in one transaction and read joined. One merge of one property counts a
//! day, and a writer that saw the year before never overwrites it. It is one year of 365 days: a table of
//! several has the year in its keys, `{employee:06}_{year:04}`, and 366 slots.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]
#![allow(clippy::indexing_slicing, reason = "days are 0 to 364")]

use entable::{
    ErrorKind, Verb,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    /// Messages of each day: `Day000` to `Day182` in part 1, `Day183` to `Day364` in part 2.
    #[table(series("Day{:03}"))]
    days: [i32; 365],
    /// The employee's remark about the year, in the second row.
    #[table(part = 2)]
    remark: Option<String>,
}

/// Fields of part 2 alone: a read of one row.
#[derive(Debug, PartialEq, Projection)]
#[table(of = Year)]
struct Remark {
    employee: u32,
    remark: Option<String>,
}

fn year(employee: u32) -> Point<Year> {
    Year::primary().department("Sales").employee(employee)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let years: Table<Year> = client.table();
    years.create().await?;

    // Both rows are inserted together, or none.
    recorder.clear();
    for employee in [223, 224] {
        let new = Year { department: "Sales".into(), employee, days: [0; 365], remark: None };
        years.insert(&new).await?;
    }
    let inserts = recorder.take();
    assert_eq!(inserts.len(), 2);
    assert!(inserts.iter().all(|insert| insert.verbs() == [Verb::Insert, Verb::Insert]));

    // `dynamic` sees the rows as they are stored.
    let rows = client.dynamic("Messages").query(Keys::partition("Sales")).collect().await?;
    for row in &rows {
        let type_name = row.entity_type().unwrap_or_default();
        println!("{}  {type_name:8} {} properties", row.row_key(), row.properties().len());
    }
    let keys: Vec<&str> = rows.iter().map(|row| row.row_key()).collect();
    assert_eq!(keys, ["000223_01", "000223_02", "000224_01", "000224_02"]);

    // A count that is known: one merge of one property in one row, without a read.
    recorder.clear();
    years.patch_at(year(223), Year::patch().days(211, 12)).await?;
    let requests = recorder.take();
    assert!(requests.len() == 1 && requests[0].verbs() == [Verb::Merge]);

    // A year is two point reads.
    let Some(mut seen) = years.get(year(223)).await? else {
        return Err(Error::new(ErrorKind::NotFound, "the year is not there"));
    };
    let reads = recorder.take();
    assert!(reads.len() == 2 && reads.iter().all(|request| request.is_read()));
    assert_eq!((seen.days[210], seen.days[211]), (0, 12));
    println!("messages on day 211: {}", seen.days[211]);

    // Another writer counts a day of the second row; the first writer changed a day of the first row.
    years.patch_at(year(223), Year::patch().days(364, 3)).await?;
    seen.days[0] = 1;
    let refused = years.replace(&seen).await.err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::PreconditionFailed));
    println!("replace of what was seen before: {refused:?}");
    let now = years.update(year(223), |year| {
        year.days[0] = 1;
        Ok(())
    });
    let now = now.await?;
    assert_eq!((now.days[0], now.days[211], now.days[364]), (1, 12, 3));

    // Fields of one part are read from its row, and a filter compares them there.
    years.patch_at(year(224), Year::patch().remark("quiet")).await?;
    recorder.clear();
    let remark = years.get_as::<Remark>(year(224)).await?.and_then(|found| found.remark.clone());
    assert_eq!((remark.as_deref(), recorder.take().len()), (Some("quiet"), 1));
    let sales = || years.query(Year::primary().department("Sales"));
    let quiet = sales().filter(Year::REMARK.eq("quiet")).select::<Remark>().collect().await?;
    assert_eq!(quiet.iter().map(|found| found.employee).collect::<Vec<_>>(), [224]);

    // A query hands out whole years, page by page.
    let pages = sales().page_size(1);
    let first = pages.page(None).await?;
    assert_eq!((first.items.len(), first.items[0].employee), (1, 223));
    let busy: Vec<i32> =
        sales().collect().await?.iter().map(|year| year.days.iter().sum()).collect();
    println!("messages of the year: {busy:?}");
    assert_eq!(busy, [16, 0]);

    assert!(years.delete_at(year(224)).await?);
    assert_eq!(sales().count().await?, 1);
    Ok(())
}
