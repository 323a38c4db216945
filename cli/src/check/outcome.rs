//! The outcome of one thing that is tried.

use std::fmt::Debug;

use entable::Error;

/// The outcome of one promise, pattern or lost answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The promise, the pattern, or the write and its cut.
    pub(crate) name: String,
    /// The difference from the promised outcome, or `None` if it matched.
    pub(crate) found: Option<String>,
}

impl Finding {
    pub(crate) fn new(name: impl Into<String>, outcome: Result<(), Unexpected>) -> Self {
        Self { name: name.into(), found: outcome.err().map(|unexpected| unexpected.0) }
    }
}

/// A difference from the promised outcome, with the expected and the found value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unexpected(pub(crate) String);

impl From<Error> for Unexpected {
    fn from(error: Error) -> Self {
        Self(format!("unexpected error: {error}"))
    }
}

/// Compares a result with the promised one.
pub(crate) fn expect<T: PartialEq + Debug>(
    what: &str,
    expected: T,
    found: T,
) -> Result<(), Unexpected> {
    if expected == found {
        return Ok(());
    }
    Err(Unexpected(format!("{what}: expected {expected:?}, found {found:?}")))
}

/// Compares a failure with the promised one, which `is` recognizes.
pub(crate) fn expect_error<T>(
    what: &str,
    expected: &str,
    result: Result<T, Error>,
    is: impl FnOnce(&Error) -> bool,
) -> Result<(), Unexpected> {
    match result {
        Err(error) if is(&error) => Ok(()),
        Err(error) => Err(Unexpected(format!("{what}: expected {expected}, found: {error}"))),
        Ok(_) => Err(Unexpected(format!("{what}: expected {expected}, found success"))),
    }
}
