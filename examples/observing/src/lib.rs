//! The example is in the folder above this one: `cargo run -p entable-example-observing --example observing`.
//!
//! It has a package of its own, so that no other example builds OpenTelemetry.
