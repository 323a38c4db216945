//! Opens the store: a file, or the service. No other part of this program depends on which.

use std::{path::Path, time::Duration};

use entable::{
    BoxError,
    backend::{Durability, Embedded, layer::Recorder},
};

use crate::options::Options;

/// Opens the store behind a layer that records its requests.
pub fn open(options: &Options, directory: &Path) -> Result<Recorder, BoxError> {
    if options.azure {
        return azure();
    }
    let path = options.db.clone().unwrap_or_else(|| directory.join("flights.db"));
    // A crash only costs another run of this program, so writes need not be synced one by one.
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    Ok(Recorder::around(Embedded::options().durability(relaxed).open(path)?))
}

#[cfg(feature = "azure-wire")]
fn azure() -> Result<Recorder, BoxError> {
    use entable::{
        Azure, AzureOptions,
        backend::layer::{Retry, RetryPolicy},
    };

    let text = std::env::var("ENTABLE_CONNECTION_STRING")
        .map_err(|_| "set ENTABLE_CONNECTION_STRING to the account's connection string")?;
    let azure = Azure::new(AzureOptions::from_connection_string(&text)?)?;
    Ok(Recorder::around(Retry::around(azure, RetryPolicy::new())))
}

#[cfg(not(feature = "azure-wire"))]
fn azure() -> Result<Recorder, BoxError> {
    Err("this program was built without Azure: cargo run --release --features azure --example quickstart -- --azure".into())
}
