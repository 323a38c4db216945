//! Runs the bodies of the fuzz targets of rows, layouts and journals without a fuzzer: on a small corpus, on changes of it,
//! and on random inputs.
//!
//! `ENTABLE_LONG=1` tries a hundred times as many.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop where something is wrong"
)]

#[path = "../../fuzz/bodies/row_layout.rs"]
mod bodies;
#[path = "../../fuzz/bodies/journal.rs"]
mod journal_bodies;
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn row_layout() {
    replay("row_layout", 20_000, bodies::row_layout);
}

#[test]
fn journal() {
    replay("journal", 20_000, journal_bodies::journal);
}
