//! Queues: what a queue in a table does, and workers on queues.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod conformance;
mod fixture;
mod history;
mod races;
mod strange;
mod table;
mod worker;
