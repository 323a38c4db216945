//! Loads on an account that pushes back: how many requests a client keeps in flight, what share of the account's limit
//! it gets, and what other requests notice of it. All time is virtual.
//!
//! `ENTABLE_LONG=1` writes 10,000,000 entities against the limits of the service, or as many as `ENTABLE_LOAD` says.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss
)]

mod bulk;
mod fair;
mod growth;
mod layer;
mod world;
