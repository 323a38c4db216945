//! The outcome of one thing that is tried.

use std::fmt::Debug;

use entable::Error;

/// One thing that was tried, and what was found where it did not go as promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What was tried.
    pub(crate) name: String,
    /// What was found; `None` if all was as promised.
    pub(crate) found: Option<String>,
}

impl Finding {
    pub(crate) fn new(name: impl Into<String>, outcome: Result<(), Unexpected>) -> Self {
        Self { name: name.into(), found: outcome.err().map(|unexpected| unexpected.0) }
    }
}

/// What was found in place of what is promised.
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
