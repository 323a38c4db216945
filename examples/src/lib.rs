//! The examples are in the folder above: `cargo run --release --example quickstart` to begin with.
