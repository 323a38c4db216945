//! The service's promises, on each backend and through each layer.

use entable::{
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
