//! Tests the state after a crash: processes that are killed, files that are torn or damaged.
//!
//! `ENTABLE_LONG=1` kills hundreds of times and damages thousands of files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests stop where something is wrong"
)]

mod adversary;
mod image;
mod header;
mod kill;
mod quiet;
mod relaxed;
mod rows;
mod verified;

/// Returns `few` by default, and `many` if `ENTABLE_LONG` is set.
fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("ENTABLE_LONG").is_some() { many } else { few }
}

/// A small generator of numbers, so that a failing round can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
