//! Tests the public contract with programs as a user writes them.
#![allow(clippy::reversed_empty_ranges, reason = "a range that is empty is asked for")]
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod absent;
mod blob_target;
mod browser;
mod conditions;
mod cursors;
mod declaring;
mod driver;
mod edges;
mod errors;
mod exact;
mod flaky_blobs;
mod flattened;
mod layout;
mod layout_rows;
mod logs;
mod names;
mod periods;
mod reading;
mod report;
#[path = "../guide/store.rs"]
mod store;
mod writing;
