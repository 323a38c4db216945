//! Tests the generated code through the public interface and without a backend.
#![allow(missing_docs, clippy::unwrap_used)]

mod discriminator;
mod edm_enum;
mod entity;
mod extra;
mod flatten;
mod forms;
mod key_part;
mod optional;
mod paths;
mod projection;
mod rename;
mod store;
mod validate;

use std::borrow::Borrow;

use entable::{Keys, Row};

/// The keys of a row.
fn keys(row: &Row) -> (&str, &str) {
    (row.partition_key(), row.row_key())
}

/// The names of a row's properties, in order.
fn properties(row: &Row) -> Vec<String> {
    row.to_bag().unwrap().iter().map(|(name, _)| name.to_owned()).collect()
}

/// The keys as the service is asked for them.
fn filter(keys: impl Borrow<Keys>) -> String {
    keys.borrow().filter().to_string()
}
