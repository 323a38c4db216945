//! The service's promises, on each backend and through each layer.

use std::sync::Arc;

use entable::{
    Clock, SteppedClock, SystemClock,
    backend::{
        Embedded, Memory,
        layer::{Fault, Recorder},
    },
    conformance_suite,
};

conformance_suite!(memory, Memory::new());
conformance_suite!(embedded, scratch());
conformance_suite!(recorder, Recorder::around(Memory::new()));
conformance_suite!(fault, Fault::around(Memory::new()));

/// A store whose file goes when it is closed.
fn scratch() -> Embedded {
    let directory = tempfile::tempdir().unwrap();
    Embedded::open(directory.path().join("store.db")).unwrap()
}
// A clock that never moves: order and versions do not hang on it.
conformance_suite!(
    standing_clock,
    Memory::with_clock(Arc::new(SteppedClock::new(SystemClock.now())))
);
