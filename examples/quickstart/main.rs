//! Loads flights from New York into a file or into an account of the service, queries and changes them,
//! and prints the cost of each request.
//!
//! `cargo run --release --example quickstart -- --help`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints what it shows")]
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
mod report;

use std::process::ExitCode;

use entable::{BoxError, prelude::*};
use time::Date;

use crate::{
    load::Data,
    options::{HELP, Options},
    report::Report,
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
    let mut report = Report::new(recorder);
    questions::ask(&flights, last_day, &mut report).await?;
    changes::make(&flights, &mut report).await?;
    println!("\nall answers are as expected");
    Ok(())
}
