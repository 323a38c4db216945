//! Rows of several types: sets, versions, dynamic entities, references.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod aggregate;
mod bad_input;
mod dynamic;
mod fixture;
mod set;
mod upgrade;
mod version;
