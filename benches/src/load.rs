//! A year of flights into a file, through `Bulk`.

use std::{path::Path, sync::Arc, time::Duration};

use entable::{
    backend::{Durability, EmbeddedOptions},
    prelude::*,
    table::Writable,
};
use time::{Date, OffsetDateTime};

use crate::{
    csv, data,
    embedded::runtime,
    figure::{in_turns, note, rate},
    flight::Flight,
    line::{BadField, Line, Record},
};

/// A flight of the quickstart without its copy in the log tail.
#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Flights",
    partition_key = "{origin}_{day:%Y%m%d}",
    row_key = "dep_{sched_dep_time:04}_{carrier}_{flight:04}"
)]
pub(crate) struct Single {
    origin: String,
    day: Date,
    sched_dep_time: u16,
    #[table(store)]
    carrier: String,
    flight: u16,
    tailnum: Option<String>,
    dest: String,
    dep_time: Option<u16>,
    dep_delay: Option<i32>,
    sched_arr_time: u16,
    arr_time: Option<u16>,
    arr_delay: Option<i32>,
    air_time: Option<u16>,
    distance: u16,
    left: OffsetDateTime,
}

impl Record for Single {
    const COLUMNS: &'static [&'static str] = Flight::COLUMNS;

    fn read(line: &mut Line<'_>) -> Result<Self, BadField> {
        let flight = Flight::read(line)?;
        Ok(Self {
            origin: flight.origin,
            day: flight.day,
            sched_dep_time: flight.sched_dep_time,
            carrier: flight.carrier,
            flight: flight.flight,
            tailnum: flight.tailnum,
            dest: flight.dest,
            dep_time: flight.dep_time,
            dep_delay: flight.dep_delay,
            sched_arr_time: flight.sched_arr_time,
            arr_time: flight.arr_time,
            arr_delay: flight.arr_delay,
            air_time: flight.air_time,
            distance: flight.distance,
            left: flight.left,
        })
    }
}

/// The entities per second, parsed before and while loading; the real year where `given`.
pub(crate) fn run(given: Option<&Path>) {
    let directory = tempfile::tempdir().unwrap();
    let file = data::year_file(given, directory.path());
    let goal = ">= 100000";
    let (parsed, both) = measure::<Single>(directory.path(), &file);
    rate("load_per_second", parsed, goal);
    rate("load_and_parse_per_second", both, goal);
    let (parsed, both) = measure::<Flight>(directory.path(), &file);
    note("load_per_second with a copy", format!("{parsed:.0}"));
    note("load_and_parse_per_second with a copy", format!("{both:.0}"));
}

fn measure<E>(directory: &Path, file: &Path) -> (f64, f64)
where
    E: TableEntity + Writable + Record,
{
    let entities: Vec<E> = csv::read(file).unwrap();
    let (parsed, both) =
        in_turns(|| load(directory, &entities), || load(directory, &csv::read::<E>(file).unwrap()));
    let count = entities.len() as f64;
    (count / parsed.as_secs_f64(), count / both.as_secs_f64())
}

/// Loads into a new file, until all of it is on disk.
fn load<E: TableEntity + Writable>(directory: &Path, entities: &[E]) {
    let path = directory.join("flights.db");
    let runtime = runtime();
    runtime.block_on(async {
        let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
        let store = Arc::new(EmbeddedOptions::new().durability(relaxed).open(&path).unwrap());
        let client = Client::builder().backend(store.clone()).build().unwrap();
        let table: Table<E> = client.table();
        table.create().await.unwrap();
        let report = table.bulk().insert_all(entities).await.unwrap().into_result().unwrap();
        assert_eq!(report.done, entities.len() as u64);
        store.flush().await.unwrap();
    });
    drop(runtime);
    std::fs::remove_file(path).unwrap();
}
