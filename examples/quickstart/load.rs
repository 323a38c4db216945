//! Loads the files into the tables.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use entable::{BoxError, prelude::*, table::Writable};

use crate::{
    csv::{self, CsvError},
    flight::{Airline, Airport, Flight, Plane},
};

/// The records of the files.
#[derive(Debug)]
pub struct Data {
    pub airlines: Vec<Airline>,
    pub airports: Vec<Airport>,
    pub planes: Vec<Plane>,
    pub flights: Vec<Flight>,
}

impl Data {
    /// Reads all four files, so that a line that does not parse is found before anything is written.
    pub fn read(directory: &Path) -> Result<Self, CsvError> {
        Ok(Self {
            airlines: csv::read(&directory.join("airlines.csv"))?,
            airports: csv::read(&directory.join("airports.csv"))?,
            planes: csv::read(&directory.join("planes.csv"))?,
            flights: csv::read(&directory.join("flights.csv"))?,
        })
    }

    /// Writes all records into new tables.
    pub async fn load(&self, client: &Client) -> Result<(), BoxError> {
        load(&client.table(), &self.airlines).await?;
        load(&client.table(), &self.airports).await?;
        load(&client.table(), &self.planes).await?;
        load(&client.table(), &self.flights).await
    }
}

/// Creates a table. Waits while the service still deletes a table of that name, which takes about 40 s.
async fn create<E: TableEntity>(table: &Table<E>) -> Result<(), BoxError> {
    for _ in 0..60 {
        match table.create().await {
            Err(error) if error.code() == Some("TableBeingDeleted") => {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            created => return Ok(created?),
        }
    }
    Err(format!("{} is still being deleted; try again later", table.name()).into())
}

/// Replaces a table by a new one with these entities.
async fn load<E>(table: &Table<E>, entities: &[E]) -> Result<(), BoxError>
where
    E: TableEntity + Writable,
{
    let start = Instant::now();
    table.delete_table_if_exists().await?;
    create(table).await?;
    let report = table.bulk().insert_all(entities).await?.into_result()?;
    println!(
        "{:10} {:6} entities in {:4} requests, {:.2} s",
        table.name(),
        report.done,
        report.requests,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
