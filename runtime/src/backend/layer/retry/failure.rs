//! Classifying a request's error by what it tells about the outcome.

use crate::{
    backend::NotSent,
    error::{Error, ErrorKind, ServiceCode},
};

/// The outcome of a failed request as far as its error tells it, from certain to doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
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

impl Failure {
    /// Classifies the error of a write.
    pub(super) fn of_write(error: &Error) -> Self {
        match (error.kind(), error.service_code()) {
            (ErrorKind::Ambiguous, _) => Self::Unknown,
            (_, Some(ServiceCode::TooManyRequests)) => Self::NotDone,
            (ErrorKind::Throttled, _) => Self::Throttled,
            (ErrorKind::Backend, _) if NotSent::is_cause_of(error) => Self::NotDone,
            (ErrorKind::Backend, None) => Self::Unknown,
            (ErrorKind::Backend, Some(code)) if is_passing_status(code.status()) => Self::Unknown,
            (_, Some(code)) if code.status() == 408 => Self::Unknown,
            _ => Self::Refused,
        }
    }

    /// Returns whether a read that failed with this error may succeed later.
    pub(super) fn is_read_worth_repeating(error: &Error) -> bool {
        match (error.kind(), error.service_code()) {
            (ErrorKind::Throttled, _) | (ErrorKind::Backend, None) => true,
            (_, Some(code)) => is_passing_status(code.status()),
            _ => false,
        }
    }
}

/// Returns whether a request that was answered with this HTTP status may succeed later.
fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429) || (status >= 500 && !matches!(status, 501 | 505))
}
