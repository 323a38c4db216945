//! What a failure says about trying again: whether it passes by itself, or would come every time.

use std::{error::Error as StdError, io, time::Duration};

use crate::error::{BoxError, Error, ErrorKind, Retry};

/// Why a message was not handled.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may go well another time: it is tried again, and does not count.
    Passing(Error),
    /// It counts towards poison.
    Counted(String),
}

impl Failure {
    /// What a handler failed with. What passes is asked for among all causes: a handler may wrap what
    /// it was given.
    pub(super) fn of(error: BoxError) -> Self {
        if !causes(&*error).any(is_passing) {
            return Self::Counted(error.to_string());
        }
        match error.downcast::<Error>() {
            Ok(error) if error.retry() != Retry::Never => Self::Passing(*error),
            Ok(error) => Self::Passing(wrapped(*error)),
            Err(error) => Self::Passing(wrapped(error)),
        }
    }
}

fn wrapped(cause: impl Into<BoxError>) -> Error {
    let cause = cause.into();
    let wait = causes(&*cause).filter_map(|cause| cause.downcast_ref::<Error>()?.retry_after());
    let wait = wait.max();
    let message = format!("a handler failed for now: {cause}");
    let error = Error::new(ErrorKind::Backend, message).with_source(cause);
    match wait {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}

fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| (*error).source())
}

fn is_passing(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<Error>() {
        return error.retry() == Retry::PassesAlone;
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return is_of_network(error.kind());
    }
    cause.is::<tokio::time::error::Elapsed>()
}

fn is_of_network(kind: io::ErrorKind) -> bool {
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

/// How long what passes is waited for, the longer the more often it did not: 5 s, 10 s, .. to 5
/// minutes, half of it by chance.
pub(super) fn back_off(tries: i32, random: u64, asked: Option<Duration>) -> Duration {
    let doublings = u32::try_from(tries).unwrap_or(0).min(MOST_DOUBLINGS);
    let bound = FIRST.saturating_mul(1 << doublings).min(MOST);
    let half = bound / 2;
    let jitter = half.mul_f64(f64::from(u16::try_from(random & 0xffff).unwrap_or(0)) / 65_536.0);
    (half + jitter).max(asked.unwrap_or_default())
}

const FIRST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(300);
const MOST_DOUBLINGS: u32 = 6;

#[cfg(test)]
mod tests {
    use std::{fmt, io, time::Duration};

    use super::{Failure, back_off};
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
        matches!(Failure::of(error.into()), Failure::Passing(_))
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
        assert!(back_off(0, 0, None) >= Duration::from_millis(2500));
        assert!(back_off(0, u64::MAX, None) <= Duration::from_secs(5));
        assert!(back_off(4, 0, None) >= Duration::from_secs(40));
        assert!(back_off(i32::MAX, u64::MAX, None) <= Duration::from_secs(300));
        assert!(back_off(-1, 0, None) <= Duration::from_secs(5));
        let asked = Some(Duration::from_secs(900));
        assert_eq!(back_off(0, 0, asked), Duration::from_secs(900));
    }
}
