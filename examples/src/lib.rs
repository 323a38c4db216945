//! The examples are in the folder above this one.
//!
//! Begin with `cargo run --release --example quickstart`.
