//! Attacks the library as an unfriendly user would, through the public contract alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unit_arg,
    reason = "programs as users write them; a helper that fails is a failed test"
)]

mod batches;
mod copies;
mod files;
mod interleaved;
mod keys;
mod lists;
mod model;
mod oracle;
mod queries;
mod races;
mod sets;
mod shapes;
mod types;
mod values;
mod verbs;

use model::{Contact, Employee, Review, employee, point, staff, table};
