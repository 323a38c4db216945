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

/// Every promise as `topic::promise`.
pub const PROMISES: &[&str] = crate::for_each_promise!(crate::promise_names);

/// Tries one promise on a backend that is known to break those in `differs`: it has to break them,
/// so that the list stays true.
#[doc(hidden)]
pub async fn keeps(
    name: &str,
    differs: &[&str],
    promise: impl Future<Output = ()> + Send + 'static,
) {
    match (tokio::spawn(promise).await, differs.contains(&name)) {
        (Ok(()), true) => panic!("`{name}` is kept: take it off the list of differences"),
        (Err(broken), false) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
        _ => {}
    }
}

/// Makes one test for each promise: `conformance_suite!(name, backend)`.
///
/// `backend` is evaluated anew for each test, inside an async function, and may name what is in
/// scope around the macro. The tests are `name::topic::promise` and run on tokio, whose `macros`
/// and `rt-multi-thread` features the calling crate needs.
///
/// A backend that cannot always be reached is `optional` and an `Option`: without one the tests do
/// nothing. `differs: [..]` lists promises, as `"topic::promise"`, which the backend is known to
/// break.
///
/// ```
/// # #[allow(unused)]
/// # mod emulator_tests {
/// use entable::backend::Memory;
///
/// fn emulator() -> Option<Memory> {
///     std::env::var_os("EMULATOR").map(|_| Memory::new())
/// }
///
/// entable::conformance_suite!(emulator, optional emulator(), differs: ["limit::key_too_long"]);
/// # }
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($suite:ident, optional $backend:expr $(, differs: [$($differs:literal),* $(,)?])?) => {
        mod $suite {
            #[allow(unused_imports, reason = "the backend may be written without them")]
            use super::*;

            const DIFFERS: &[&str] = &[$($($differs),*)?];

            async fn setup() -> Option<$crate::conformance::Setup> {
                match $backend {
                    Some(backend) => Some($crate::conformance::Setup::new(backend).await),
                    None => None,
                }
            }

            #[test]
            fn differences_are_promises() {
                for name in DIFFERS {
                    assert!($crate::conformance::PROMISES.contains(name), "`{name}` is no promise");
                }
            }

            $crate::for_each_promise!($crate::promise_tests);
        }
    };
    ($suite:ident, $backend:expr $(, differs: [$($differs:literal),* $(,)?])?) => {
        $crate::conformance_suite!($suite, optional Some($backend) $(, differs: [$($differs),*])?);
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
                let name = concat!(stringify!($topic), "::", stringify!($promise));
                if let Some(setup) = super::setup().await {
                    let promise = async move {
                        $crate::conformance::$topic::$promise(&setup).await;
                    };
                    $crate::conformance::keeps(name, super::DIFFERS, promise).await;
                }
            })*
        })*
    };
}

/// The names of all promises, from their list.
#[doc(hidden)]
#[macro_export]
macro_rules! promise_names {
    ($($topic:ident { $($promise:ident)* })*) => {
        &[$($(concat!(stringify!($topic), "::", stringify!($promise))),*),*]
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_is_listed_once() {
        let sources = [
            ("batch", include_str!("batch.rs")),
            ("compare", include_str!("compare.rs")),
            ("concurrent", include_str!("concurrent.rs")),
            ("condition", include_str!("condition.rs")),
            ("crud", include_str!("crud.rs")),
            ("filter", include_str!("filter.rs")),
            ("limit", include_str!("limit.rs")),
            ("order", include_str!("order.rs")),
            ("page", include_str!("page.rs")),
            ("select", include_str!("select.rs")),
            ("table", include_str!("table.rs")),
            ("value", include_str!("value.rs")),
        ];
        for (topic, source) in sources {
            let written = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            for promise in written.filter_map(|line| line.split('(').next()) {
                let name = format!("{topic}::{promise}");
                assert!(PROMISES.contains(&name.as_str()), "`{name}` is not in the list");
            }
        }
        let unique: std::collections::HashSet<_> = PROMISES.iter().collect();
        assert_eq!(unique.len(), PROMISES.len());
    }

    #[tokio::test]
    #[should_panic(expected = "off the list of differences")]
    async fn a_difference_that_is_none_is_found() {
        keeps("a", &["a"], async {}).await;
    }

    #[tokio::test]
    async fn a_difference_is_expected() {
        keeps("a", &["a"], async { panic!("the promise is broken") }).await;
        keeps("b", &["a"], async {}).await;
    }
}
