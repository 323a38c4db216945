//! Access patterns: what they claim, what they predict, and what their calls send.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::duplicated_attributes,
    clippy::panic,
    clippy::indexing_slicing
)]

mod claims;
mod figures;
mod kinds;
mod locked;
mod predicted;
mod random;
mod store;
mod together;
