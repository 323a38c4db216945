//! Tests the promises of every backend on each backend and through each layer.

#![allow(clippy::expect_used, reason = "a suite without its store is a failed test")]

use std::sync::Arc;

use entable::{
    Clock, SteppedClock, SystemClock,
    backend::{
        Embedded, Memory,
        layer::{FaultInjector, Recorder, Retry, RetryPolicy},
    },
    choice_suite, conformance_suite,
};

conformance_suite!(memory, Memory::new());
conformance_suite!(embedded, scratch());
conformance_suite!(recorder, Recorder::around(Memory::new()));
conformance_suite!(fault, FaultInjector::around(Memory::new()));
conformance_suite!(retry, Retry::around(Memory::new(), RetryPolicy::new()));
// A clock that never moves: order and versions do not hang on it.
conformance_suite!(standing_clock, Memory::with_clock(standing()));

choice_suite!(memory_choices, Memory::new());
choice_suite!(embedded_choices, scratch());

/// A store whose file goes when it is closed.
fn scratch() -> Embedded {
    let directory = tempfile::tempdir().expect("a directory");
    Embedded::open(directory.path().join("store.db")).expect("a new store")
}

fn standing() -> Arc<dyn Clock> {
    Arc::new(SteppedClock::new(SystemClock.now()))
}
