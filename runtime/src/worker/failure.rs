//! Distinguishes handlers' temporary failures from failures that count towards the poison table, and computes
//! the wait before the next attempt.

use std::{error::Error as StdError, io, time::Duration};

use crate::error::{BoxError, Error, ErrorKind, Result, RetryChance};

/// How long a message is hidden after a counted failure. Multiplied by the number of such failures.
pub(super) const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// Why a handler did not handle its message.
#[derive(Debug)]
pub(super) enum HandlerFailure {
    /// The cause is temporary. The message is tried again, and the failure does not count.
    Passing(Error),
    /// The failure counts towards the poison table. Contains the text of the error.
    Counted(String),
    /// The worker stopped, and the handler did not finish in time.
    Stopped,
}

impl HandlerFailure {
    /// Classifies the error of a handler. Examines each source of the error, because a handler may wrap an error
    /// of this library.
    pub(super) fn classify_error(error: BoxError) -> Self {
        // A handler that fails because the service throttles must never lose its message.
        if !error_chain(&*error).any(is_temporary) {
            return Self::Counted(error.to_string());
        }
        match error.downcast::<Error>() {
            Ok(error) if error.retry_chance() != RetryChance::Never => Self::Passing(*error),
            // The error's own kind would count, although one of its sources is temporary.
            Ok(error) => Self::Passing(wrap_as_temporary_error(*error)),
            Err(error) => Self::Passing(wrap_as_temporary_error(error)),
        }
    }
}

/// Wraps a cause in an error that counts as temporary, with the longest wait that any of its sources
/// requests.
fn wrap_as_temporary_error(cause: impl Into<BoxError>) -> Error {
    let cause = cause.into();
    let waits =
        error_chain(&*cause).filter_map(|cause| cause.downcast_ref::<Error>()?.retry_after());
    let wait = waits.max();
    let message = format!("a handler failed for now: {cause}");
    let error = Error::new(ErrorKind::Backend, message).with_source(cause);
    match wait {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}

/// Returns the error and, after it, each of its sources.
fn error_chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| (*error).source())
}

fn is_temporary(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<Error>() {
        return error.retry_chance() == RetryChance::PassesAlone;
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return is_network_failure(error.kind());
    }
    // A timeout of tokio, which a handler may set around its own requests.
    cause.is::<tokio::time::error::Elapsed>()
}

fn is_network_failure(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}

/// Returns how long to wait after a temporary failure. The limit of the wait starts at 5 s and doubles with
/// each of `tries`, up to 5 min. `random` selects a wait between half the limit and the limit. The result is
/// at least `asked`, the wait that the service requested.
pub(super) fn backoff_after_failure(tries: i32, random: u64, asked: Option<Duration>) -> Duration {
    let doublings = u32::try_from(tries).unwrap_or(0).min(MAX_DOUBLINGS);
    let bound = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
    let half = bound / 2;
    // Random waits keep messages that failed together from returning together.
    let jitter = half.mul_f64(f64::from(u16::try_from(random & 0xffff).unwrap_or(0)) / 65_536.0);
    (half + jitter).max(asked.unwrap_or_default())
}

const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
const MAX_DOUBLINGS: u32 = 6;

/// Turns "not found" into success, because somebody else deleted the row.
pub(super) fn ignore_missing<T>(deleted: Result<T>) -> Result<()> {
    match deleted {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Turns "not found" and "changed" into success: the row is gone, or a newer version of it must be kept.
pub(super) fn ignore_newer_or_missing<T>(deleted: Result<T>) -> Result<()> {
    match deleted {
        Err(error) if error.is_precondition_failed() => Ok(()),
        deleted => ignore_missing(deleted),
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt, io, time::Duration};

    use super::{HandlerFailure, backoff_after_failure};
    use crate::error::{BoxError, Error, ErrorKind};

    #[derive(Debug)]
    struct Wrapped(BoxError);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the welcome failed")
        }
    }

    impl std::error::Error for Wrapped {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&*self.0)
        }
    }

    fn passes(error: impl Into<BoxError>) -> bool {
        matches!(HandlerFailure::classify_error(error.into()), HandlerFailure::Passing(_))
    }

    fn of(kind: ErrorKind) -> Error {
        Error::new(kind, "so it is")
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        use ErrorKind as K;
        let passing = [
            K::Throttled,
            K::Backend,
            K::Contended,
            K::Ambiguous,
            K::PreconditionFailed,
            K::KeyUnavailable,
            K::Denied,
            K::Locked,
        ];
        for kind in passing {
            assert!(passes(of(kind)), "{kind:?}");
            assert!(passes(Wrapped(of(kind).into())), "{kind:?}, wrapped");
            assert!(passes(of(K::Rejected).with_source(of(kind))), "{kind:?}, in an update");
        }
        let counted = [
            K::NotFound,
            K::Conflict,
            K::UniqueViolation,
            K::TooLarge,
            K::UnrecognizedEntity,
            K::Decode,
            K::Decrypt,
            K::Invalid,
            K::ScanRefused,
            K::InvalidCursor,
            K::Rejected,
            K::Unsupported,
            K::Corrupt,
        ];
        for kind in counted {
            assert!(!passes(of(kind)), "{kind:?}");
            assert!(!passes(Wrapped(of(kind).into())), "{kind:?}, wrapped");
        }
        assert!(!passes("no reason"));
    }

    #[test]
    fn the_network_passes_and_a_missing_file_does_not() {
        assert!(passes(io::Error::from(io::ErrorKind::ConnectionReset)));
        assert!(passes(Wrapped(io::Error::from(io::ErrorKind::TimedOut).into())));
        assert!(!passes(io::Error::from(io::ErrorKind::NotFound)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_ran_out_passes() {
        let never = std::future::pending::<()>();
        let elapsed = tokio::time::timeout(Duration::from_secs(1), never).await.unwrap_err();
        assert!(passes(elapsed));
    }

    #[test]
    fn the_wait_grows_and_is_bounded() {
        assert!(backoff_after_failure(0, 0, None) >= Duration::from_millis(2500));
        assert!(backoff_after_failure(0, u64::MAX, None) <= Duration::from_secs(5));
        assert!(backoff_after_failure(4, 0, None) >= Duration::from_secs(40));
        assert!(backoff_after_failure(i32::MAX, u64::MAX, None) <= Duration::from_secs(300));
        assert!(backoff_after_failure(-1, 0, None) <= Duration::from_secs(5));
        let asked = Some(Duration::from_secs(900));
        assert_eq!(backoff_after_failure(0, 0, asked), Duration::from_secs(900));
    }
}
