//! What a failed request says about its outcome.

use crate::error::{Error, ErrorKind, ServiceCode};

/// What is known about a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// It was refused: making it again would be refused again.
    Refused,
    /// It was not carried out, and may be made again as it is.
    NotDone,
    /// The service says that it is too busy, which it says before any work; something on the way may
    /// say the same after it.
    Throttled,
    /// It may have been carried out.
    Unknown,
}

impl Loss {
    /// What the error of a write says.
    pub(super) fn of_write(error: &Error) -> Self {
        match (error.kind(), error.service_code()) {
            (ErrorKind::Ambiguous, _) => Self::Unknown,
            (_, Some(ServiceCode::TooManyRequests)) => Self::NotDone,
            (ErrorKind::Throttled, _) => Self::Throttled,
            (ErrorKind::Backend, None) => Self::NotDone,
            (ErrorKind::Backend, Some(code)) if may_pass(code.status()) => Self::Unknown,
            (_, Some(code)) if code.status() == 408 => Self::Unknown,
            _ => Self::Refused,
        }
    }

    /// Whether a read that failed so may do better later.
    pub(super) fn read_may_pass(error: &Error) -> bool {
        match (error.kind(), error.service_code()) {
            (ErrorKind::Throttled, _) | (ErrorKind::Backend, None) => true,
            (_, Some(code)) => may_pass(code.status()),
            _ => false,
        }
    }
}

fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 429) || (status >= 500 && !matches!(status, 501 | 505))
}
