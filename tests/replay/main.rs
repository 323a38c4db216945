//! Runs the bodies of the fuzz targets without a fuzzer: on a small corpus, on changes of it, and
//! on random inputs.
//!
//! `ENTABLE_LONG=1` tries a hundred times as many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests stop where something is wrong"
)]

#[path = "../../fuzz/bodies/mod.rs"]
mod bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn key_decode() {
    replay("key_decode", 5_000, bodies::key_decode);
}

#[test]
fn row_decode() {
    replay("row_decode", 5_000, bodies::row_decode);
}

#[test]
fn filter_parse() {
    replay("filter_parse", 5_000, bodies::filter_parse);
}

#[test]
fn cursor() {
    replay("cursor", 5_000, bodies::cursor);
}

#[test]
fn history() {
    replay("history", 3_000, bodies::history);
}

#[test]
fn envelope() {
    replay("envelope", 5_000, bodies::envelope);
}
