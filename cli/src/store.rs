//! Opens the store that an argument names.

use std::{path::Path, sync::Arc};

use entable::{Client, backend::Embedded};

use crate::failure::Failure;

/// The variable with a connection string.
#[cfg(feature = "azure")]
const CONNECTION: &str = "ENTABLE_CONNECTION_STRING";
/// The variable with the path of a file that holds a connection string.
#[cfg(feature = "azure")]
const CONNECTION_FILE: &str = "ENTABLE_CONNECTION_STRING_FILE";

/// Opens a store. `creates` says whether a file that does not exist becomes a new store.
pub(crate) fn open(name: &str, creates: bool) -> Result<Client, Failure> {
    refuse_secret(name)?;
    if name == "azure:" || name.starts_with("http://") || name.starts_with("https://") {
        return open_service(name);
    }
    Ok(Client::builder().backend(open_file(name, creates)?).build()?)
}

/// Opens the file of an embedded store.
pub(crate) fn open_file(name: &str, creates: bool) -> Result<Arc<Embedded>, Failure> {
    refuse_secret(name)?;
    if name == "azure:" || name.contains("://") {
        return Err(Failure::usage(format!(
            "`{name}` is no file, and only files can be asked for this"
        )));
    }
    if !creates && !Path::new(name).exists() {
        return Err(Failure::not_found(format!("there is no file `{name}`")));
    }
    Ok(Arc::new(Embedded::open(name)?))
}

/// Refuses an argument that looks like a secret, without repeating it.
fn refuse_secret(name: &str) -> Result<(), Failure> {
    let lower = name.to_ascii_lowercase();
    if ["accountkey=", "sharedaccesssignature=", "sig="].iter().any(|part| lower.contains(part)) {
        let message = "an argument holds a secret, which every process of this machine can see: change that \
                       key, put the new one into ENTABLE_CONNECTION_STRING, and name the store `azure:`";
        return Err(Failure::usage(message));
    }
    Ok(())
}

#[cfg(not(feature = "azure"))]
fn open_service(name: &str) -> Result<Client, Failure> {
    let message = format!(
        "`{name}` is on Azure or an emulator, which this build does not know: \
         `cargo install entable-cli --features azure`"
    );
    Err(Failure::usage(message))
}

#[cfg(feature = "azure")]
fn open_service(name: &str) -> Result<Client, Failure> {
    use entable::AzureOptions;
    let options = if name == "azure:" {
        AzureOptions::from_connection_string(connection_string()?.trim())?
    } else if is_loopback(name) {
        AzureOptions::emulator().endpoint(name)?
    } else {
        let message = format!(
            "`{name}` needs credentials: put a connection string into {CONNECTION}, and \
                               name the store `azure:`"
        );
        return Err(Failure::usage(message));
    };
    Ok(Client::azure(options)?)
}

/// Returns whether the address is one of this machine: the well-known key is sent nowhere else.
#[cfg(feature = "azure")]
fn is_loopback(address: &str) -> bool {
    let host = address.trim_start_matches("http://").trim_start_matches("https://");
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

#[cfg(feature = "azure")]
fn connection_string() -> Result<String, Failure> {
    if let Ok(text) = std::env::var(CONNECTION) {
        return Ok(text);
    }
    let Ok(path) = std::env::var(CONNECTION_FILE) else {
        let message =
            format!("no credentials: set {CONNECTION}, or {CONNECTION_FILE} to the path of a file");
        return Err(Failure::usage(message));
    };
    std::fs::read_to_string(&path)
        .map_err(|error| Failure::io(&format!("reading `{path}`"), &error))
}
