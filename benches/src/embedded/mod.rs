//! The embedded store beside its engine, used directly with the same bytes.

mod fixture;
mod large;
mod reads;
mod writes;

pub(crate) use fixture::runtime;
pub(crate) use large::{child, is_child};

/// All figures; the ones of a million rows only where asked.
pub(crate) fn run(large: bool) {
    reads::run();
    writes::run();
    if large {
        large::run();
    }
}
