//! Promises as tests.

use std::{future::Future, pin::Pin};

use super::Setup;

/// Every promise as `topic::promise`.
pub const PROMISES: &[&str] = crate::for_each_promise!(crate::promise_names);

/// A promise that is being tried.
#[doc(hidden)]
pub type Trial = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tests one promise in its own runtime, with the setup of a suite. Without a setup, the test does nothing.
/// `differs` lists the promises that the suite's backend is known to break.
///
/// Futures are boxed to keep each test a plain call. Compiling the runtime's generic functions for each of
/// some 2,000 tests would make the suites take minutes to build.
#[doc(hidden)]
pub fn try_promise(
    name: &str,
    differs: &[&str],
    setup: Pin<Box<dyn Future<Output = Option<Setup>>>>,
    promise: fn(Setup) -> Trial,
) {
    block_on(Box::pin(async move {
        if let Some(setup) = setup.await {
            keeps(name, differs, promise(setup)).await;
        }
    }));
}

/// Runs a test on a runtime of its own, with two worker threads.
#[doc(hidden)]
pub fn block_on(test: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime").block_on(test);
}

/// Tests one promise. A promise in `differs` has to fail, which keeps the list current.
async fn keeps(name: &str, differs: &[&str], promise: Trial) {
    match (tokio::spawn(promise).await, differs.contains(&name)) {
        (Ok(()), true) => panic!("`{name}` is kept; remove it from the list of differences"),
        (Err(broken), false) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
        _ => {}
    }
}

/// Generates one test for each promise: `conformance_suite!(name, backend)`.
///
/// `backend` is evaluated again in each test, inside an async function, and may use names in scope at the
/// macro call. The tests are `name::topic::promise`; each runs on its own tokio runtime.
///
/// Mark a backend that cannot always be reached as `optional` and give an `Option`. The tests do nothing
/// for `None`. `differs: [..]` lists the promises, as `"topic::promise"`, that the backend is known to
/// break.
///
/// ```
/// # #[allow(unused)]
/// # mod emulator_tests {
/// use entable_core::backend::Memory;
///
/// fn emulator() -> Option<Memory> {
///     std::env::var_os("EMULATOR").map(|_| Memory::new())
/// }
///
/// entable_conformance::conformance_suite!(emulator, optional emulator(), differs: ["limit::key_too_long"]);
/// # }
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($suite:ident, optional $backend:expr $(, differs: [$($differs:literal),* $(,)?])?) => {
        $crate::promise_suite!($suite, $backend, [$($($differs),*)?], for_each_promise);
    };
    ($suite:ident, $backend:expr $(, differs: [$($differs:literal),* $(,)?])?) => {
        $crate::conformance_suite!($suite, optional Some($backend) $(, differs: [$($differs),*])?);
    };
}

/// Makes one test for each of this crate's choices: `choice_suite!(name, backend)`.
#[macro_export]
macro_rules! choice_suite {
    ($suite:ident, $backend:expr) => {
        $crate::promise_suite!($suite, Some($backend), [], for_each_choice);
    };
}

/// A module of tests, from a list of promises.
#[doc(hidden)]
#[macro_export]
macro_rules! promise_suite {
    ($suite:ident, $backend:expr, [$($differs:literal),*], $list:ident) => {
        mod $suite {
            #[allow(unused_imports, reason = "the backend may be written without them")]
            use super::*;

            const DIFFERS: &[&str] = &[$($differs),*];

            async fn setup() -> Option<$crate::Setup> {
                match $backend {
                    Some(backend) => Some($crate::Setup::new(backend).await),
                    None => None,
                }
            }

            #[test]
            fn differences_are_promises() {
                for name in DIFFERS {
                    assert!($crate::PROMISES.contains(name), "`{name}` is not a promise of the suite");
                }
            }

            $crate::$list!($crate::promise_tests);
        }
    };
}

/// The tests of a suite, as a list of promises calls for them.
#[doc(hidden)]
#[macro_export]
macro_rules! promise_tests {
    ($($topic:ident { $($promise:ident)* })*) => {
        $(mod $topic {
            $(#[test]
            fn $promise() {
                $crate::try_promise(
                    concat!(stringify!($topic), "::", stringify!($promise)),
                    super::DIFFERS,
                    Box::pin(super::setup()),
                    |setup| Box::pin(async move {
                        $crate::$topic::$promise(&setup).await;
                    }),
                );
            })*
        })*
    };
}

/// The names and functions of promises, as their list calls for them.
#[doc(hidden)]
#[macro_export]
macro_rules! promise_trials {
    ($($topic:ident { $($promise:ident)* })*) => {
        &[$($((
            concat!(stringify!($topic), "::", stringify!($promise)),
            |setup| Box::pin(async move { $crate::$topic::$promise(&setup).await }),
        )),*),*]
    };
}

/// The names of promises, as their list calls for them.
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

    #[tokio::test]
    #[should_panic(expected = "from the list of differences")]
    async fn a_difference_that_is_none_is_found() {
        keeps("a", &["a"], Box::pin(async {})).await;
    }

    #[tokio::test]
    async fn a_difference_is_expected() {
        keeps("a", &["a"], Box::pin(async { panic!("the promise is broken") })).await;
        keeps("b", &["a"], Box::pin(async {})).await;
    }
}
