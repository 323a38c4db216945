//! Tests that values which go in come out again, and that rows which do not come out can be replaced and
//! deleted.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::duplicated_attributes
)]

mod codecs;
mod json;
mod unreadable;
