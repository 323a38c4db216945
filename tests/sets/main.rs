//! Tests rows of several types: sets, versions, dynamic entities, references.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::unit_arg,
    clippy::indexing_slicing
)]

mod aggregate;
mod bad_input;
mod dispatch;
mod dynamic;
mod fixture;
mod guide_h;
mod guide_m;
mod guide_rest;
mod guide_values;
mod guide_x;
mod lookup;
mod pages;
mod rewrite;
mod same_keys;
mod set;
mod upgrade;
mod version;
