//! Tests queues: queues in tables, and workers on queues.
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
mod unusual_messages;
mod table;
mod worker;
