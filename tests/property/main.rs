//! Tests laws of keys, values, filters, rows, pages and batches, on random input.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

mod answers;
mod batch;
mod bounds;
mod collide;
mod edm;
mod filter;
mod identifier;
mod key;
mod limits;
mod nesting;
mod page;
mod row;
mod template;
