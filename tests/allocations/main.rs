//! Budgets of allocations, in numbers that are exact: a count does not depend on the machine, and what
//! comes to a verb unnoticed changes it. A change that lowers a number lowers the budget too.
//!
//! The bytes are those of 64-bit targets, and of the compiler that `rust-toolchain.toml` names.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![cfg(target_pointer_width = "64")]

mod reads;
mod writes;

use allocation_counter::{AllocationInfo, measure};

/// What a piece of work allocates: the number of allocations, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allocated {
    count: u64,
    bytes: u64,
}

/// Counts what `work` allocates on this thread, when it is done for the second time.
fn allocated(mut work: impl FnMut()) -> Allocated {
    work();
    let AllocationInfo { count_total, bytes_total, .. } = measure(work);
    Allocated { count: count_total, bytes: bytes_total }
}
