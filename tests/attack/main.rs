//! What an unfriendly user tries, with nothing but the contract in hand.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unit_arg,
    reason = "programs as users write them; a helper that fails is a failed test"
)]

mod batches;
mod copies;
mod files;
mod hooked;
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
