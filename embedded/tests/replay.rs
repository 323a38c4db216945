//! Runs the body of the fuzz target of rows and layouts without a fuzzer: on a small corpus, on changes of it, and on
//! random inputs.
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
#[path = "../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn row_layout() {
    replay("row_layout", 20_000, bodies::row_layout);
}
