//! Examples that keep values in blobs are in the folder above this one: `cargo run -p entable-example-blobs --example large_photo`.
//!
//! They have a package of their own, so that no other example builds a blob store.
