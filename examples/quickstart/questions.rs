//! Reads: a point, a range, the log tail, several partitions, some fields, pages.

use entable::{BoxError, page::Cursor, prelude::*};
use time::{Date, macros::date};

use crate::{
    flight::{Departure, Flight, Lateness},
    report::{Joined, Report, check},
};

const SECOND: Date = date!(2013 - 01 - 02);

/// Sends every query, and checks its answer and its cost.
pub async fn ask(
    flights: &Table<Flight>,
    last_day: Date,
    report: &mut Report,
) -> Result<(), BoxError> {
    one_flight(flights, report).await?;
    a_morning(flights, report).await?;
    the_newest(flights, report, last_day).await?;
    the_late(flights, report).await?;
    some_fields(flights, report).await?;
    page_by_page(flights, report).await
}

/// Formats a flight as one line.
pub fn line(f: &Flight) -> String {
    let late = f.dep_delay.map_or("cancelled".to_owned(), |minutes| format!("{minutes:+} min"));
    let (at, to) = (f.sched_dep_time, &f.dest);
    format!("{} {at:04} {}{:<4} to {to} {late}", f.origin, f.carrier, f.flight)
}

async fn one_flight(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let new_year = Flight::primary().origin("EWR").day(date!(2013 - 01 - 01));
    let point = new_year.sched_dep_time(515).carrier("UA").flight(1545);
    report.question(
        "The 5:15 of United to Houston, by its key",
        flights.query(point.clone()).explain(),
    );
    let flight = flights.get(point).await?.ok_or("there is no such flight")?;
    println!("   {}", line(&flight));
    check("its requests", report.print_cost(1), 1)?;
    check("its plane", flight.tailnum.as_deref(), Some("N14228"))
}

async fn a_morning(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let morning = Flight::primary().origin("JFK").day(SECOND).sched_dep_time_range(600..=859);
    let query = flights.query(morning);
    report
        .question("Departures from JFK on 2 January, 6:00 to 8:59, in time order", query.explain());
    let found = query.collect().await?;
    found.iter().take(3).for_each(|flight| println!("   {}", line(flight)));
    println!("   ..");
    check("the requests", report.print_cost(found.len()), 1)?;
    check("the flights", found.len(), 68)?;
    check("time order", found.is_sorted_by_key(|flight| flight.sched_dep_time), true)?;
    check("the last one", found.last().map(|flight| flight.flight), Some(59))
}

async fn the_newest(
    flights: &Table<Flight>,
    report: &mut Report,
    day: Date,
) -> Result<(), BoxError> {
    let tail = Flight::newest().origin("EWR").day(day);
    let query = flights.query(tail).select::<Departure>().take(10);
    report.question("The ten newest departures from EWR", query.explain());
    let found = query.collect().await?;
    for d in &found {
        println!("   {} {}{:<4} to {}", d.left, d.carrier, d.flight, d.dest);
    }
    check("the requests", report.print_cost(found.len()), 1)?;
    check("newest first", found.is_sorted_by(|a, b| a.left >= b.left), true)?;
    let numbers: Vec<u16> = found.iter().map(|departure| departure.flight).collect();
    let expected = match day {
        // The first arm is for the data of one week, the second for those of the year.
        _ if day == date!(2013 - 01 - 07) => {
            [4257, 299, 1066, 3819, 4162, 4322, 515, 4088, 4404, 4619]
        }
        _ => [1389, 2227, 3604, 2043, 249, 1071, 259, 705, 321, 1244],
    };
    check("the newest", numbers, expected)
}

async fn the_late(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let airports = ["EWR", "JFK", "LGA"];
    let days = airports.map(|origin| Flight::primary().origin(origin).day(SECOND));
    let late = Flight::CARRIER.eq("EV") & Flight::DEP_DELAY.gt(120);
    let query = flights.query_many(days).filter(late);
    report.question("ExpressJet on 2 January, more than two hours late", Joined(query.explain()));
    let found = query.collect().await?;
    found.iter().for_each(|flight| println!("   {}", line(flight)));
    check("the requests", report.print_cost(found.len()), 3)?;
    let numbers: Vec<u16> = found.iter().map(|flight| flight.flight).collect();
    let expected = [4104, 4412, 4364, 4617, 4133, 3272, 4092, 4581, 4125, 4204, 4257];
    check("the late flights", numbers, expected)
}

async fn some_fields(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let day = Flight::primary().origin("LGA").day(SECOND);
    let query = flights.query(day).filter(Flight::DEST.eq("ATL")).select::<Lateness>();
    report.question("The delays from LGA to Atlanta: three fields of each flight", query.explain());
    let found = query.collect().await?;
    let minutes: i32 = found.iter().filter_map(|flight| flight.arr_delay).sum();
    println!("   {minutes} minutes together");
    check("the requests", report.print_cost(found.len()), 1)?;
    check("flights and minutes", (found.len(), minutes), (32, 506))
}

async fn page_by_page(flights: &Table<Flight>, report: &mut Report) -> Result<(), BoxError> {
    let day = || Flight::primary().origin("JFK").day(date!(2013 - 01 - 01));
    let query = flights.query(day()).page_size(100);
    report
        .question("A page of a day, and the next page by a cursor saved as text", query.explain());
    let first = query.page(None).await?;
    let saved = first.next.as_ref().map(Cursor::to_string).ok_or("there is a second page")?;
    println!("   {saved}");
    // Another process could continue from the text of the cursor.
    let second = flights.query(day()).page_size(100).page(Some(saved.parse()?)).await?;
    check("the requests", report.print_cost(first.items.len() + second.items.len()), 2)?;
    let ends = [first.items.last(), second.items.first()].map(|f| f.map(|f| f.flight));
    check("where the pages meet", ends, [Some(66), Some(27)])?;
    let foreign = query.filter(Flight::DEST.eq("ATL")).page(Some(saved.parse()?)).await;
    check("another query's cursor", foreign.is_err_and(|error| error.is_invalid_cursor()), true)
}
