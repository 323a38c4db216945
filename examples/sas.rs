//! Gives a device leave to read and add its own rows for an hour, without the account's key.
//!
//! A shared access signature (SAS) names a table, permissions, a range of keys and an end. The holder of
//! the account's key computes it without a request; whoever has the address that carries it may do what
//! it says, and nothing else. This example makes and reads signatures, and needs no account.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    AccountKey,
    prelude::*,
    sas::{TablePermissions, TableSas},
};
use time::{Duration, macros::datetime};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Readings", partition_key = "{device}", row_key = "{number:08}")]
struct Reading {
    device: String,
    number: u32,
    celsius: f64,
}

/// A key in the form of an account's key. It opens no account.
const KEY: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

fn main() -> Result<(), Error> {
    let key = AccountKey::new("contosostaff", KEY)?;
    let now = datetime!(2030-01-01 12:00 UTC);

    // One device: its partition, to read and to add, for an hour, over TLS.
    let path = Reading::primary().device("sensor-17");
    let own = TableSas::for_path(path)?
        .permissions(TablePermissions::READ | TablePermissions::ADD)
        .expires(now + Duration::hours(1))
        .https_only();
    let token = own.sign(&key)?;
    let url = token.to_url("https://contosostaff.table.core.windows.net/Readings");
    println!("the device gets an address of {} characters; it holds:", url.len());
    for (name, meaning) in [
        ("tn=", "the table"),
        ("sp=", "permissions: r reads, a adds"),
        ("spk=", "the range begins at this PartitionKey"),
        ("epk=", "and ends at this one"),
        ("se=", "the end"),
        ("spr=", "https alone"),
    ] {
        let part = url.split(['?', '&']).find(|part| part.starts_with(name));
        println!("  {:<28} {meaning}", part.unwrap_or("-"));
        assert!(part.is_some(), "the address has {name}");
    }
    assert!(url.contains("spk=sensor-17") && url.contains("epk=sensor-17"));
    assert!(url.contains("sp=ra"));
    assert!(!url.contains(KEY), "the key stays here");

    // The signature does not show itself in logs.
    println!("in a log it is {token:?}");
    assert!(!format!("{token:?}").contains("sig="));

    // Another range, another signature: nobody can widen one.
    let wider = TableSas::new("Readings").permissions(TablePermissions::READ);
    let wider = wider.expires(now + Duration::hours(1)).sign(&key)?;
    let wider = wider.to_url("https://contosostaff.table.core.windows.net/Readings");
    let signature = |url: &str| url.split("sig=").nth(1).map(str::to_owned);
    assert_ne!(signature(&url), signature(&wider));

    // A client without the account's key cannot sign.
    let guest = Client::memory();
    let refused = guest.sas(&own);
    if let Err(error) = &refused {
        println!("a store in memory has no account: {error}");
    }
    assert!(refused.is_err_and(|error| error.is_unsupported()));
    println!("a device opens it with `Client::azure(AzureOptions::from_sas(&url)?)`");
    Ok(())
}
