//! Tests the verbs end to end on the store in memory: the rows that each writes, and its requests.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unit_arg,
    clippy::duplicated_attributes
)]

mod asking;
mod asking_slots;
mod beyond;
mod check;
mod at_once;
mod copies;
mod remote_copies;
mod dated;
mod dated_copies;
mod dated_edges;
mod dated_jobs;
mod dated_windows;
mod face;
mod holder;
mod limits;
mod linger;
mod lost;
mod metered;
mod observed;
mod own_op_id;
mod read_ahead;
mod rebuild;
mod row_views;
mod series;
mod simulated_account;
mod single;
mod stored_key;
mod under;
mod unknown;
mod updates;
mod versions;
mod wide;
mod wide_copies;
mod wide_moves;
mod wide_versions;
