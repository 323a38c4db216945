//! Classifies a request's error by what it implies about the outcome.

use crate::{
    backend::NotSent,
    error::{Error, ErrorKind, ServiceCode},
};

/// The outcome of a failed request as implied by its error, from certain to doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailureCertainty {
    /// The service refused the request, and would refuse it again.
    Refused,
    /// The request was certainly not carried out, and can be repeated.
    NotDone,
    /// "Too busy": the service answers so before it carries a request out, but a proxy can answer so
    /// afterwards.
    Throttled,
    /// The request may have been carried out.
    Unknown,
}

impl FailureCertainty {
    /// Classifies the error of a write.
    pub(super) fn of_write(error: &Error) -> Self {
        let code = error.service_code();
        match error.kind() {
            ErrorKind::Ambiguous => Self::Unknown,
            // Cosmos DB answers 429 before it does any work.
            _ if code == Some(&ServiceCode::TooManyRequests) => Self::NotDone,
            ErrorKind::Throttled => Self::Throttled,
            ErrorKind::Backend if NotSent::is_cause_of(error) => Self::NotDone,
            ErrorKind::Backend if code.is_none_or(|code| is_passing_status(code.status())) => {
                Self::Unknown
            }
            ErrorKind::Backend
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::PreconditionFailed
            | ErrorKind::UniqueViolation
            | ErrorKind::TooLarge
            | ErrorKind::UnrecognizedEntity
            | ErrorKind::Decode
            | ErrorKind::Decrypt
            | ErrorKind::KeyUnavailable
            | ErrorKind::Contended
            | ErrorKind::LeaseLost
            | ErrorKind::Invalid
            | ErrorKind::ScanRefused
            | ErrorKind::InvalidCursor
            | ErrorKind::Rejected
            | ErrorKind::Unsupported
            | ErrorKind::Lossy
            | ErrorKind::Stale
            | ErrorKind::Denied
            | ErrorKind::Locked
            | ErrorKind::RolledBack
            | ErrorKind::Corrupt => match code {
                // A server that stopped waiting may have carried the request out before.
                Some(code) if code.status() == 408 => Self::Unknown,
                _ => Self::Refused,
            },
        }
    }

    /// Returns whether a read that failed with this error may succeed later.
    pub(super) fn is_read_worth_repeating(error: &Error) -> bool {
        let has_passing_status = error.service_code().map(|code| is_passing_status(code.status()));
        match error.kind() {
            ErrorKind::Throttled => true,
            ErrorKind::Backend => has_passing_status.unwrap_or(true),
            ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::PreconditionFailed
            | ErrorKind::UniqueViolation
            | ErrorKind::TooLarge
            | ErrorKind::UnrecognizedEntity
            | ErrorKind::Decode
            | ErrorKind::Decrypt
            | ErrorKind::KeyUnavailable
            | ErrorKind::Ambiguous
            | ErrorKind::Contended
            | ErrorKind::LeaseLost
            | ErrorKind::Invalid
            | ErrorKind::ScanRefused
            | ErrorKind::InvalidCursor
            | ErrorKind::Rejected
            | ErrorKind::Unsupported
            | ErrorKind::Lossy
            | ErrorKind::Stale
            | ErrorKind::Denied
            | ErrorKind::Locked
            | ErrorKind::RolledBack
            | ErrorKind::Corrupt => has_passing_status.unwrap_or(false),
        }
    }
}

/// Returns whether a request that was answered with this HTTP status may succeed later.
fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429) || (status >= 500 && !matches!(status, 501 | 505))
}
