//! Runs the bodies of the server's fuzz targets without a fuzzer: on a small corpus, on changes of it, and on random
//! inputs.
//!
//! `ENTABLE_LONG=1` tries a hundred times as many.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop where something is wrong"
)]

#[path = "../../fuzz/bodies/server.rs"]
mod bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn server_address() {
    replay("server_address", 2_000, bodies::server_address);
}

#[test]
fn server_json() {
    replay("server_json", 2_000, bodies::server_json);
}

#[test]
fn server_batch() {
    replay("server_batch", 2_000, bodies::server_batch);
}

#[test]
fn server_xml() {
    replay("server_xml", 2_000, bodies::server_xml);
}

#[test]
fn server_access() {
    replay("server_access", 2_000, bodies::server_access);
}
