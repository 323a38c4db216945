//! Failures of a command, and their exit codes for scripts.

use entable::{Error, ErrorKind};

/// The exit code of a failure of the store, the disk or the network.
pub(crate) const FAILED: u8 = 1;
/// The exit code of arguments that make no sense together; clap uses it too.
pub(crate) const USAGE: u8 = 2;
/// The exit code of a row, a table or a file that does not exist.
pub(crate) const NOT_FOUND: u8 = 3;
/// The exit code of a row, a table or a file that exists already, or has changed.
pub(crate) const CONFLICT: u8 = 4;
/// The exit code of data that is not right: lines that were set aside, stores that differ, damaged files.
pub(crate) const BAD_DATA: u8 = 5;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// A word for scripts, such as `NotFound`.
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, kind: &str, message: impl Into<String>) -> Self {
        Self { code, kind: kind.to_owned(), message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, "Usage", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn bad_data(message: impl Into<String>) -> Self {
        Self::new(BAD_DATA, "BadData", message)
    }

    pub(crate) fn io(doing: &str, error: &std::io::Error) -> Self {
        let (code, kind) = match error.kind() {
            std::io::ErrorKind::NotFound => (NOT_FOUND, "NotFound"),
            std::io::ErrorKind::AlreadyExists => (CONFLICT, "Conflict"),
            _ => (FAILED, "Io"),
        };
        Self::new(code, kind, format!("{doing} failed: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::NotFound => NOT_FOUND,
            ErrorKind::Conflict | ErrorKind::PreconditionFailed | ErrorKind::UniqueViolation => {
                CONFLICT
            }
            ErrorKind::Corrupt
            | ErrorKind::RolledBack
            | ErrorKind::Decode
            | ErrorKind::TooLarge
            | ErrorKind::Invalid => BAD_DATA,
            _ => FAILED,
        };
        Self::new(code, &format!("{:?}", error.kind()), with_cause(&error))
    }
}

/// The most characters of a cause that are shown.
const CAUSE_CHARACTERS: usize = 400;

/// Returns the error's text and, if a credential gave no token, the reason: it is in the cause alone.
fn with_cause(error: &Error) -> String {
    let cause = std::error::Error::source(error).filter(|_| error.is_denied());
    let Some(cause) = cause else { return error.to_string() };
    let shown = cause.to_string();
    let printable = |character: char| if character.is_control() { ' ' } else { character };
    let shown: String = shown.chars().map(printable).take(CAUSE_CHARACTERS).collect();
    format!("{error}: {shown}")
}
