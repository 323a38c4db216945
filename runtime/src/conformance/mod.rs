//! The service's promises, to be tried on any backend.
//!
//! One async function for each promise, in files by topic; [`for_each_promise!`] is the one list of
//! them, and [`conformance_suite!`] makes a test of each for a backend. The number that begins the
//! documentation of a promise is the section of the service's semantics that it comes from: 2 the
//! data model, 3 single operations, 4 queries, 5 entity group transactions, 6 error codes. What
//! the service's own documents and recorded traffic leave open is not promised here.
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
//! [`for_each_promise!`]: crate::for_each_promise
//! [`conformance_suite!`]: crate::conformance_suite

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a promise is a test: it asserts, and a broken promise panics"
)]

pub mod batch;
pub mod compare;
pub mod concurrent;
pub mod condition;
pub mod crud;
pub mod filter;
pub mod limit;
mod list;
pub mod order;
pub mod page;
pub mod select;
mod setup;
pub mod table;
pub mod value;

pub use setup::Setup;

/// Makes one test for each promise: `conformance_suite!(name, backend)`.
///
/// `backend` is evaluated anew for each test, inside an async function, and may name what is in
/// scope around the macro. The tests are `name::topic::promise` and run on tokio, whose `macros`
/// and `rt-multi-thread` features the calling crate needs.
#[macro_export]
macro_rules! conformance_suite {
    ($suite:ident, $backend:expr) => {
        mod $suite {
            #[allow(unused_imports, reason = "the backend may be written without them")]
            use super::*;

            async fn setup() -> $crate::conformance::Setup {
                $crate::conformance::Setup::new($backend).await
            }

            $crate::for_each_promise!($crate::promise_tests);
        }
    };
}

/// The tests of one suite, from the list of promises.
#[doc(hidden)]
#[macro_export]
macro_rules! promise_tests {
    ($($topic:ident { $($promise:ident)* })*) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                $crate::conformance::$topic::$promise(&super::setup().await).await;
            })*
        })*
    };
}
