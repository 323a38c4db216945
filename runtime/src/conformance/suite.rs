//! Promises as tests.

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
