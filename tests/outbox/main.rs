//! Tests work in other partitions: remote copies, the outbox, workers.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::duplicated_attributes,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

mod blob_fields;
mod blob_parts;
mod blob_store;
mod blobs;
mod check;
mod check_kinds;
mod check_lists;
mod check_unique;
mod copies;
mod damaged;
mod deadline;
mod expiry;
mod expiry_wide;
mod encrypted_blobs;
mod failures;
mod fixture;
mod forged;
mod history;
mod hooked;
mod leases;
mod lists;
mod load;
mod lost;
mod messages;
mod moved_tokens;
mod moves;
mod registrations;
mod shared;
mod sizes;
mod clock_skew;
mod timer_clock;
mod transfer;
mod unique;
mod weak_store;
mod weak_stores;
mod wide_races;
mod worker;
