//! Keeps sixty days of log-ins in a table for each day, and drops the days before in one request each.
//! Beside it the naive design: one table, whose old rows are found by a scan and deleted row by row.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

/// A log-in in the table of its day.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{number:desc}")]
struct Login {
    user: String,
    at: OffsetDateTime,
    number: u32,
}

/// A log-in in one table of all days.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "AllLogins", partition_key = "{user}", row_key = "{at:desc}_{number:desc}")]
struct NaiveLogin {
    user: String,
    at: OffsetDateTime,
    number: u32,
}

/// The midnight at which the last of ninety days begins.
const TODAY: OffsetDateTime = datetime!(2014-07-31 0:00 UTC);
const DAYS: i32 = 90;
const KEPT: i32 = 60;
const USERS: u32 = 20;

/// Returns who logged in when: every user twice a day.
fn all() -> impl Iterator<Item = (String, OffsetDateTime, u32)> {
    (0..DAYS).flat_map(|day| {
        (0..USERS * 2).map(move |number| {
            let at = TODAY - Duration::DAY * day + Duration::minutes(i64::from(number));
            (format!("user{:02}", number % USERS), at, number)
        })
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let requests = || recorder.take().len();

    let logins: Table<Login> = client.table();
    let days =
        logins.create_between(TODAY - Duration::DAY * (DAYS - 1)..TODAY + Duration::DAY).await?;
    let rows = all().map(|(user, at, number)| Login { user, at, number });
    logins.bulk().insert_all(rows).await?.into_result()?;
    println!("dated: {days} tables made and filled in {} requests", requests());
    assert_eq!(days, 90);

    let naive: Table<NaiveLogin> = client.table();
    naive.create().await?;
    let rows = all().map(|(user, at, number)| NaiveLogin { user, at, number });
    naive.bulk().insert_all(rows).await?.into_result()?;
    println!("naive: one table filled in {} requests", requests());

    // A log-in by all of its keys: one request in either design.
    let first = Login::primary().user("user07").at(TODAY + Duration::minutes(7)).number(7);
    assert!(logins.get(first).await?.is_some());
    assert_eq!(requests(), 1);

    // A user's last week: a range of each day's table, the newest first; or one range.
    let week = TODAY - Duration::DAY * 6..TODAY + Duration::DAY;
    let path = Login::primary().at_between(week.clone()).user("user07");
    let found = logins.query(path).collect().await?;
    let dated_requests = requests();
    let same = naive.query(NaiveLogin::primary().user("user07").at_range(week)).collect().await?;
    println!("a week of one user: {dated_requests} requests dated, {} naive", requests());
    assert_eq!((found.len(), same.len()), (14, 14));
    assert!(found.iter().zip(&same).all(|(a, b)| (a.at, a.number) == (b.at, b.number)));

    // Tables that are older than sixty days go.
    let oldest_kept = TODAY - Duration::DAY * (KEPT - 1);
    let dropped = logins.drop_before(oldest_kept).await?;
    let dated_requests = requests();
    println!("dated: {} old tables dropped in {dated_requests} requests", dropped.dropped.len());
    assert_eq!((dropped.dropped.len(), dropped.kept.len()), (30, 0));
    assert!(dated_requests <= 30 + 6);

    let old = naive.query(NaiveLogin::scan()).filter(NaiveLogin::AT.lt(oldest_kept));
    let report = old.delete_all().await?;
    let naive_requests = requests();
    println!("naive: {} old rows deleted in {naive_requests} requests", report.done);
    assert_eq!(report.done, 30 * u64::from(USERS) * 2);

    // Both keep the same log-ins.
    let window = TODAY - Duration::DAY * (KEPT - 1)..TODAY + Duration::DAY;
    let kept = Login::primary().at_between(window.clone()).user("user07");
    let kept = logins.query(kept).collect().await?;
    let same = naive.query(NaiveLogin::primary().user("user07").at_range(window)).collect().await?;
    assert_eq!((kept.len(), same.len()), (120, 120));

    // A table below the floor is not made again.
    let late = Login { user: "user07".into(), at: TODAY - Duration::DAY * 80, number: 1 };
    let refused = logins.insert(&late).await;
    assert!(refused.as_ref().is_err_and(Error::is_not_found));
    println!(
        "a late writer: {}",
        refused.err().map(|error| error.message().to_owned()).unwrap_or_default()
    );
    Ok(())
}
