//! Writes: a transaction, a transaction that is refused, and two writers of one row.

use entable::{BoxError, prelude::*};
use time::{Date, macros::date};

use crate::{
    flight::Flight,
    questions::line,
    report::{Report, check},
};

const SECOND: Date = date!(2013 - 01 - 02);

/// Makes every change, and checks its result.
pub async fn make(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    all_or_nothing(flights, report).await?;
    two_writers(flights, report).await
}

async fn all_or_nothing(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    report.question(
        "Replace a cancelled flight by another one, in one transaction",
        "one read, one transaction",
    );
    let day = || Flight::primary().origin("EWR").day(SECOND).sched_dep_time(1601).carrier("UA");
    let cancelled = flights.get(day().flight(623)).await?.ok_or("there is no such flight")?;
    let mut relief = Flight { flight: 8623, ..cancelled.clone().into_inner() };
    (relief.dep_time, relief.dep_delay) = (Some(1630), Some(29));
    let mut egt = flights.transaction();
    egt.insert(&relief)?.delete(&cancelled)?;
    let done = egt.commit().await?;
    println!("   {}", line(&relief));
    check("a read and the transaction", report.print_requests(done.len()), 2)?;
    check("the cancelled flight is gone", flights.get(day().flight(623)).await?.is_none(), true)?;

    report
        .question("Insert two flights, one of which exists: neither is written", "one transaction");
    let another = Flight { flight: 8624, ..relief.clone() };
    let mut egt = flights.transaction();
    egt.insert(&another)?.insert(&relief)?;
    let error = egt.commit().await.err().ok_or("the second insert conflicts")?;
    println!("   refused: {error}");
    report.print_requests(0);
    check(
        "the second insert conflicts",
        (error.is_conflict(), error.failed_index()),
        (true, Some(1)),
    )?;
    check("the first", flights.get(day().flight(8624)).await?.is_none(), true)
}

async fn two_writers(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let day = || Flight::primary().origin("EWR").day(SECOND).sched_dep_time(1601).carrier("UA");
    let point = || day().flight(8623);
    report.question(
        "Two writers change one row that both have read",
        "one read, two replaces, an update (a read and a replace)",
    );
    let mut mine = flights.get(point()).await?.ok_or("there is no such flight")?;
    let mut theirs = mine.clone();
    theirs.dep_delay = Some(31);
    flights.replace(&theirs).await?;
    mine.arr_delay = Some(12);
    match flights.replace(&mine).await {
        Err(error) if error.is_precondition_failed() => println!("   refused: {error}"),
        other => return Err(format!("expected a lost race, found {other:?}").into()),
    }
    let both = flights
        .update(point(), |flight| {
            flight.arr_delay = Some(12);
            Ok(())
        })
        .await?;
    report.print_requests(1);
    check("both changes", (both.dep_delay, both.arr_delay), (Some(31), Some(12)))
}
