//! The service's promises, on each backend and through each layer.

use entable::{
    backend::{
        Memory,
        layer::{Fault, Recorder},
    },
    conformance_suite,
};

conformance_suite!(memory, Memory::new());
conformance_suite!(recorder, Recorder::around(Memory::new()));
conformance_suite!(fault, Fault::around(Memory::new()));
