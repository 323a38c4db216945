//! What an unfriendly user tries, with nothing but the contract in hand.

mod batches;
mod files;
mod keys;
mod model;
mod queries;
mod shapes;
mod types;
mod values;
mod verbs;

use model::{Contact, Employee, Review, employee, point, staff, table};
