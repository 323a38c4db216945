//! The service's promises, on the emulator.

use entable::conformance_suite;

use crate::emulator::backend;

conformance_suite!(azurite, optional backend());
