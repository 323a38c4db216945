//! The checks and errors that queues share.

use std::time::Duration;

use super::port::LONGEST;
use crate::error::{Error, ErrorKind, Result};

/// The fewest and the most characters of a queue's name ("Naming queues and metadata").
const NAME_LENGTH: (usize, usize) = (3, 63);

/// Checks the name of a queue, for implementations of [`Queue`](super::Queue).
///
/// ```
/// use entable_core::queue::check_name;
///
/// assert!(check_name("letters-2").is_ok());
/// assert!(check_name("Letters").is_err_and(|error| error.is_invalid()));
/// ```
///
/// # Errors
///
/// Fails with `is_invalid` for a name that Azure Storage refuses.
pub fn check_name(name: &str) -> Result<()> {
    let (least, most) = NAME_LENGTH;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_shaped = name.chars().all(|c| is_plain(c) || c == '-')
        && name.starts_with(is_plain)
        && name.ends_with(is_plain)
        && !name.contains("--");
    if is_shaped && (least..=most).contains(&name.len()) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not a valid queue name; use {least} to {most} lower-case letters, digits and single hyphens between \
         them",
        name.escape_debug()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Checks a delay or a visibility timeout, for implementations of [`Queue`](super::Queue). `what` names the
/// duration in the error.
///
/// ```
/// use std::time::Duration;
/// use entable_core::queue::{LONGEST, check_duration};
///
/// assert!(check_duration("a delay", Duration::ZERO, LONGEST).is_ok());
/// let longer = LONGEST + Duration::from_secs(1);
/// assert!(check_duration("a delay", Duration::ZERO, longer).is_err_and(|error| error.is_invalid()));
/// ```
///
/// # Errors
///
/// Fails with `is_invalid` if `time` is shorter than `least` or longer than 7 days.
pub fn check_duration(what: &str, least: Duration, time: Duration) -> Result<()> {
    if (least..=LONGEST).contains(&time) {
        return Ok(());
    }
    let message = format!("{what} of {time:?} is not between {least:?} and 7 days");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Returns the error for a receiver that no longer holds the message `id`, for implementations of
/// [`Queue`](super::Queue).
///
/// ```
/// assert!(entable_core::queue::lease_lost_error("5974b586").is_lease_lost());
/// ```
pub fn lease_lost_error(id: &str) -> Error {
    let message = format!(
        "this receiver no longer holds the message `{}`: its visibility timeout ended, or it was deleted",
        id.escape_debug()
    );
    Error::new(ErrorKind::LeaseLost, message)
}
