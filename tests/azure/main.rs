//! The Azure backend: against an emulator whose connection string is in `ENTABLE_AZURITE`, and
//! against an HTTP client inside the process that loses answers.
//!
//! Without an emulator its tests say that they were not run. `.ci/azurite` runs them all.

mod conformance;
mod emulator;
mod rows;
