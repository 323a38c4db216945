//! Checks and errors that all queues of this crate share.

use std::time::Duration;

use super::LONGEST;
use crate::error::{Error, ErrorKind, Result};

/// The fewest and the most characters of a queue's name ("Naming queues and metadata").
const NAME_LENGTH: (usize, usize) = (3, 63);

/// Fails with `is_invalid` for a name that Azure Storage refuses for a queue.
pub(crate) fn check_name(name: &str) -> Result<()> {
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

/// Fails with `is_invalid` if `time` is shorter than `least` or longer than 7 days. `what` names the
/// duration in the error.
pub(crate) fn check_duration(what: &str, least: Duration, time: Duration) -> Result<()> {
    if (least..=LONGEST).contains(&time) {
        return Ok(());
    }
    let message = format!("{what} of {time:?} is not between {least:?} and 7 days");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Returns the error for a receiver that no longer holds the message `id`.
pub(crate) fn lease_lost_error(id: &str) -> Error {
    let message = format!(
        "this receiver no longer holds the message `{}`: its visibility timeout ended, or it was deleted",
        id.escape_debug()
    );
    Error::new(ErrorKind::LeaseLost, message)
}
