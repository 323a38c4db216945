//! Flights from New York: loads four files into a file of its own or into an account of the
//! service, then asks it questions, and says of each what it costs.
//!
//! `cargo run --release --example quickstart -- --help`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
#![allow(unreachable_pub, reason = "modules of a program")]

mod changes;
mod csv;
mod flight;
mod line;
mod load;
mod options;
mod questions;
mod records;
mod store;
#[cfg(test)]
mod tests;
mod told;

use std::process::ExitCode;

use entable::{BoxError, prelude::*};
use time::Date;

use crate::{
    load::Data,
    options::{HELP, Options},
    told::Told,
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
    let recorder = store::open(&options, directory.path())?;
    let client = Client::builder().backend(recorder.clone()).build()?;
    data.load(&client).await?;

    let flights = client.table();
    let last_day = data.flights.iter().map(|flight| flight.day).max().unwrap_or(Date::MIN);
    let mut told = Told::new(recorder);
    questions::ask(&flights, last_day, &mut told).await?;
    changes::make(&flights, &mut told).await?;
    println!("\nall answers are as expected");
    Ok(())
}
