//! The promises of Azure Table storage as tests for any store or queue of [entable].
//!
//! Each promise is an async function, in a file by topic. [`for_each_promise!`] lists all promises, and
//! [`conformance_suite!`] generates a test of each for a backend. The number at the beginning of a promise's
//! documentation is the section of the service's semantics that it comes from: 2 the data model, 3 single
//! operations, 4 queries, 5 entity group transactions, 6 error codes. The suite promises nothing that the
//! service's documents and recorded traffic leave open. If entable's own stores agree on an answer there,
//! [`choice`] has it and [`choice_suite!`] tests it.
//!
//! ```
//! # #[allow(unused)]
//! # mod memory_tests {
//! use entable_core::backend::Memory;
//!
//! entable_conformance::conformance_suite!(memory, Memory::new());
//! # }
//! ```
//!
//! [`survey`] tries all promises on a service at run time, and returns those that it breaks.
//!
//! Promises of queues are in [`queue`] and have numbers of their own. [`queue_suite!`] tests them.
//!
//! [entable]: https://docs.rs/entable

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
