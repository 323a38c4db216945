//! The example is next to this file: `cargo run -p entable-example-observing --example observing`.
//!
//! It has a package of its own, so that no other example builds OpenTelemetry.
