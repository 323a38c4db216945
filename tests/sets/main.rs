//! Rows of several types: sets, versions, dynamic entities, references.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod fixture;
mod set;
mod version;
