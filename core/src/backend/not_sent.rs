//! The type that marks the error of a request that never left this process.

use std::{error::Error as StdError, fmt};

use crate::error::{BoxError, Error};

/// An error that, as the source of another error, says that the request was never sent. Any such
/// request can be repeated, also a write.
#[derive(Debug)]
pub struct NotSent(BoxError);

impl NotSent {
    /// Wraps the reason why the request was not sent.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }

    /// Returns whether the error belongs to a request that was never sent.
    pub fn is_cause_of(error: &Error) -> bool {
        error.source().is_some_and(|source| source.is::<Self>())
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request was not sent: {}", self.0)
    }
}

impl StdError for NotSent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
