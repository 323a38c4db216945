//! The service's promises, to be tried on any backend.
//!
//! One async function for each promise, in files by topic; [`for_each_promise!`] is the one list of
//! them, and [`conformance_suite!`] makes a test of each for a backend. The number that begins the
//! documentation of a promise is the section of the service's semantics that it comes from: 2 the
//! data model, 3 single operations, 4 queries, 5 entity group transactions, 6 error codes. What
//! the service's own documents and recorded traffic leave open is not promised here; where this
//! crate's stores agree on an answer, [`choice`] has it and [`choice_suite!`] tests it.
//!
//! ```
//! # #[allow(unused)]
//! # mod memory_tests {
//! use entable::backend::Memory;
//!
//! entable::conformance_suite!(memory, Memory::new());
//! # }
//! ```
//!
//! [`survey`] tries all promises on a service that a program has at hand, and returns those that it breaks.
//!
//! Promises of queues are in [`queue`], with numbers of their own; [`queue_suite!`] tries them.
//!
//! [`queue_suite!`]: crate::queue_suite
//! [`for_each_promise!`]: crate::for_each_promise
//! [`conformance_suite!`]: crate::conformance_suite
//! [`choice_suite!`]: crate::choice_suite

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a promise is a test: it asserts, and a broken promise panics"
)]

pub mod batch;
pub mod choice;
pub mod compare;
pub mod concurrent;
pub mod condition;
pub mod crud;
pub mod filter;
pub mod limit;
mod list;
pub mod order;
pub mod page;
pub mod queue;
pub mod select;
mod setup;
mod suite;
mod survey;
pub mod table;
pub mod value;

pub use queue::QueueSetup;
pub use setup::Setup;
pub use suite::{PROMISES, Trial, block_on, try_promise};
pub use survey::{Difference, SurveyReport, delete_tables, survey};
