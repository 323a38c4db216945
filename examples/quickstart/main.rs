//! Flights from New York: loads four files into a database, then asks it questions, and says of
//! each what it costs.
//!
//! `cargo run --release --example quickstart -- --help`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
#![allow(unreachable_pub, reason = "modules of a program")]

mod csv;
mod flight;
mod load;
mod options;
#[cfg(test)]
mod tests;
mod told;

use std::{process::ExitCode, time::Duration};

use entable::{
    BoxError,
    backend::{Durability, Embedded, layer::Recorder},
    page::Cursor,
    prelude::*,
};
use time::{Date, macros::date};

use crate::{
    flight::{Departure, Flight, Lateness},
    load::Data,
    options::{HELP, Options},
    told::{Each, Told, check},
};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    let data = Data::read(&options.data)?;
    let directory = tempfile::tempdir()?;
    let path = options.db.unwrap_or_else(|| directory.path().join("flights.db"));
    // What is loaded can be loaded again: it need not be on disk before the next request.
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let store = Embedded::options().durability(relaxed).open(path)?;
    let recorder = Recorder::around(store);
    let client = Client::builder().backend(recorder.clone()).build()?;
    data.load(&client).await?;

    let flights: Table<Flight> = client.table();
    let last_day = data.flights.iter().map(|flight| flight.day).max().unwrap_or(Date::MIN);
    let mut told = Told::new(recorder);
    one_flight(&flights, &mut told).await?;
    a_morning(&flights, &mut told).await?;
    the_newest(&flights, &mut told, last_day).await?;
    the_late(&flights, &mut told).await?;
    some_fields(&flights, &mut told).await?;
    page_by_page(&flights, &mut told).await?;
    all_or_nothing(&flights, &mut told).await?;
    two_writers(&flights, &mut told).await?;
    println!("\nall answers are as expected");
    Ok(())
}

const SECOND: Date = date!(2013 - 01 - 02);

fn line(f: &Flight) -> String {
    let late = f.dep_delay.map_or("cancelled".to_owned(), |minutes| format!("{minutes:+} min"));
    let (at, to) = (f.sched_dep_time, &f.dest);
    format!("{} {at:04} {}{:<4} to {to} {late}", f.origin, f.carrier, f.flight)
}

async fn one_flight(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let new_year = Flight::primary().origin("EWR").day(date!(2013 - 01 - 01));
    let point = new_year.sched_dep_time(515).carrier("UA").flight(1545);
    told.ask("The 5:15 of United to Houston, by its key", flights.query(point.clone()).explain());
    let flight = flights.get(point).await?.ok_or("there is no such flight")?;
    println!("   {}", line(&flight));
    check("its requests", told.answered(1), 1)?;
    check("its plane", flight.tailnum.as_deref(), Some("N14228"))
}

async fn a_morning(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let morning = Flight::primary().origin("JFK").day(SECOND).sched_dep_time_range(600..=859);
    let query = flights.query(morning);
    told.ask("Departures from JFK on 2 January, 6:00 to 8:59, in time order", query.explain());
    let found = query.collect().await?;
    found.iter().take(3).for_each(|flight| println!("   {}", line(flight)));
    println!("   ..");
    check("the requests", told.answered(found.len()), 1)?;
    check("the flights", found.len(), 68)?;
    check("time order", found.is_sorted_by_key(|flight| flight.sched_dep_time), true)?;
    check("the last one", found.last().map(|flight| flight.flight), Some(59))
}

async fn the_newest(flights: &Table<Flight>, told: &mut Told, day: Date) -> Result<(), BoxError> {
    let tail = Flight::newest().origin("EWR").day(day);
    let query = flights.query(tail).select::<Departure>().take(10);
    told.ask("The ten newest departures from EWR", query.explain());
    let found = query.collect().await?;
    for d in &found {
        println!("   {} {}{:<4} to {}", d.left, d.carrier, d.flight, d.dest);
    }
    check("the requests", told.answered(found.len()), 1)?;
    check("newest first", found.is_sorted_by(|a, b| a.left >= b.left), true)?;
    let numbers: Vec<u16> = found.iter().map(|departure| departure.flight).collect();
    let expected = match day {
        // The data of one week, and of the year.
        _ if day == date!(2013 - 01 - 07) => {
            [4257, 299, 1066, 3819, 4162, 4322, 515, 4088, 4404, 4619]
        }
        _ => [1389, 2227, 3604, 2043, 249, 1071, 259, 705, 321, 1244],
    };
    check("the newest", numbers, expected)
}

async fn the_late(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let airports = ["EWR", "JFK", "LGA"];
    let days = airports.map(|origin| Flight::primary().origin(origin).day(SECOND));
    let late = Flight::CARRIER.eq("EV") & Flight::DEP_DELAY.gt(120);
    let query = flights.query_many(days).filter(late);
    told.ask("ExpressJet on 2 January, more than two hours late", Each(query.explain()));
    let found = query.collect().await?;
    found.iter().for_each(|flight| println!("   {}", line(flight)));
    check("the requests", told.answered(found.len()), 3)?;
    let numbers: Vec<u16> = found.iter().map(|flight| flight.flight).collect();
    let expected = [4104, 4412, 4364, 4617, 4133, 3272, 4092, 4581, 4125, 4204, 4257];
    check("the late flights", numbers, expected)
}

async fn some_fields(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let day = Flight::primary().origin("LGA").day(SECOND);
    let query = flights.query(day).filter(Flight::DEST.eq("ATL")).select::<Lateness>();
    told.ask("How late the flights from LGA to Atlanta were: two fields of each", query.explain());
    let found = query.collect().await?;
    let minutes: i32 = found.iter().filter_map(|flight| flight.arr_delay).sum();
    println!("   {minutes} minutes together");
    check("the requests", told.answered(found.len()), 1)?;
    check("flights and minutes", (found.len(), minutes), (32, 506))
}

async fn page_by_page(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let day = || Flight::primary().origin("JFK").day(date!(2013 - 01 - 01));
    let query = flights.query(day()).page_size(100);
    told.ask("A page of a day, and the next one with its cursor saved as text", query.explain());
    let first = query.page(None).await?;
    let saved = first.next.as_ref().map(Cursor::to_string).ok_or("there is a second page")?;
    println!("   {saved}");
    // Another process would begin here.
    let second = flights.query(day()).page_size(100).page(Some(saved.parse()?)).await?;
    check("the requests", told.answered(first.items.len() + second.items.len()), 2)?;
    let ends = [first.items.last(), second.items.first()].map(|f| f.map(|f| f.flight));
    check("where the pages meet", ends, [Some(66), Some(27)])?;
    let foreign = query.filter(Flight::DEST.eq("ATL")).page(Some(saved.parse()?)).await;
    check("another query's cursor", foreign.is_err_and(|error| error.is_invalid_cursor()), true)
}

async fn all_or_nothing(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    told.ask("A cancelled flight, and one in its place: all or nothing", "a read, a transaction");
    let day = || Flight::primary().origin("EWR").day(SECOND).sched_dep_time(1601).carrier("UA");
    let cancelled = flights.get(day().flight(623)).await?.ok_or("there is no such flight")?;
    let mut relief = Flight { flight: 8623, ..cancelled.clone().into_inner() };
    (relief.dep_time, relief.dep_delay) = (Some(1630), Some(29));
    let mut egt = flights.atomic();
    egt.insert(&relief)?.delete(&cancelled)?;
    let done = egt.commit().await?;
    println!("   {}", line(&relief));
    check("a read and the transaction", told.sent(done.len()), 2)?;
    check("the cancelled one", flights.get(day().flight(623)).await?.is_none(), true)?;

    told.ask("Two more, one of which is there: neither is written", "one transaction");
    let another = Flight { flight: 8624, ..relief.clone() };
    let mut egt = flights.atomic();
    egt.insert(&another)?.insert(&relief)?;
    let error = egt.commit().await.err().ok_or("the second insert conflicts")?;
    println!("   refused: {error}");
    told.sent(0);
    check(
        "a conflict of the second",
        (error.is_conflict(), error.failed_index()),
        (true, Some(1)),
    )?;
    check("the first", flights.get(day().flight(8624)).await?.is_none(), true)
}

async fn two_writers(flights: &Table<Flight>, told: &mut Told) -> Result<(), BoxError> {
    let day = || Flight::primary().origin("EWR").day(SECOND).sched_dep_time(1601).carrier("UA");
    let point = || day().flight(8623);
    told.ask("Two writers change what they both have read", "read twice, replace twice");
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
    told.sent(1);
    check("both changes", (both.dep_delay, both.arr_delay), (Some(31), Some(12)))
}
