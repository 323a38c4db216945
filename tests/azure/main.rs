//! The Azure backend: against an emulator whose connection string is in `ENTABLE_AZURITE`, and
//! against an HTTP client inside the process that loses answers.
//!
//! Without an emulator its tests say that they were not run. `.ci/azurite` runs them all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod access;
mod conformance;
mod cosmos;
mod delegation;
mod emulator;
mod blobs;
mod scripted_http;
mod raw_server;
mod faults;
mod hostile;
#[cfg(feature = "azure")]
mod identity;
mod input;
mod lost;
mod middlemen;
mod rows;
mod secondary;
mod secrets;
mod slots;
mod unique;
