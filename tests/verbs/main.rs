//! The verbs, end to end on the store in memory: what each writes, and what it costs.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod check;
mod copies;
mod elsewhere;
mod holder;
mod limits;
mod linger;
mod lost;
mod rebuild;
mod single;
mod stored_key;
mod versions;
