//! The embedded store beside its engine, used directly with the same bytes.

mod fixture;
mod large;
mod reads;
mod writes;

pub(crate) use fixture::runtime;
pub(crate) use large::{child, is_child};

use crate::Size;

/// All figures; the long ones where they are asked for.
pub(crate) fn run(size: Size) {
    reads::run();
    writes::run();
    if size >= Size::Large {
        large::run();
    }
    if size == Size::Huge {
        large::run_huge();
    }
}
