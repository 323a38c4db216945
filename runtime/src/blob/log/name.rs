//! Builds and parses the names of a log's blobs.

use std::fmt;

use object_store::path::Path;
use time::OffsetDateTime;

use super::hour::{FolderSpan, LogFolder, LogHour};
use crate::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};

/// The most bytes in the name of a log.
const MAX_LOG_NAME: usize = 63;

/// The name of one blob of a log, such as `queue/2014/07/31/1800/000001.log`: the log `queue`, the
/// hour from 18:00 to 19:00 UTC on 31 July 2014, the first blob of that hour.
///
/// ```
/// use entable::BlobLog;
///
/// let name = BlobLog::parse("queue/2014/07/31/1800/000001.log")?;
/// assert_eq!((name.log(), name.number()), ("queue", 1));
/// assert_eq!(name.hour().to_string(), "2014-07-31 18:00:00.0 +00:00:00");
/// assert_eq!(name.to_string(), "queue/2014/07/31/1800/000001.log");
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBlobName {
    log: String,
    pub(super) hour: LogHour,
    number: u32,
}

impl LogBlobName {
    pub(super) fn new(log: &str, hour: LogHour, number: u32) -> Self {
        Self { log: log.to_owned(), hour, number }
    }

    /// Parses the name of a blob.
    pub(super) fn parse(name: &str) -> Result<Self> {
        parse(name).ok_or_else(|| {
            let message = format!(
                "expected the name of a log blob, such as `queue/2014/07/31/1800/000001.log`, found `{}`",
                name.escape_debug()
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }

    /// Returns the name of the log.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Returns the time when the blob's hour begins, in UTC.
    pub fn hour(&self) -> OffsetDateTime {
        self.hour.start_time().into()
    }

    /// Returns the number of the blob within its hour; the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the name as a path of the store.
    pub(super) fn path(&self) -> Path {
        Path::from(self.to_string())
    }
}

impl fmt::Display for LogBlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = folder_name(&self.log, LogFolder::of_hour(self.hour));
        write!(f, "{folder}/{:06}.log", self.number)
    }
}

/// Returns the name of a folder of a log, without a slash at its end.
pub(super) fn folder_name(log: &str, folder: LogFolder) -> String {
    let start = OffsetDateTime::from(folder.first.start_time());
    let (year, month, day) = (start.year(), u8::from(start.month()), start.day());
    match folder.span {
        FolderSpan::Month => format!("{log}/{year:04}/{month:02}"),
        FolderSpan::Day => format!("{log}/{year:04}/{month:02}/{day:02}"),
        FolderSpan::Hour => format!("{log}/{year:04}/{month:02}/{day:02}/{:02}00", start.hour()),
    }
}

/// Checks the name of a log. Upper case is refused, since a file system that ignores case would mix
/// up two logs.
pub(super) fn check_log_name(log: &str) -> Result<()> {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    if !log.is_empty() && log.len() <= MAX_LOG_NAME && log.bytes().all(is_allowed) {
        return Ok(());
    }
    let message = format!(
        "expected a log name of 1 to {MAX_LOG_NAME} characters from `a` to `z`, digits, `-` and `_`, found `{}`",
        log.escape_debug()
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

fn parse(name: &str) -> Option<LogBlobName> {
    let mut parts = name.split('/');
    let log = parts.next().filter(|log| check_log_name(log).is_ok())?;
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let hour = parts.next()?.strip_suffix("00")?;
    let file = parts.next()?;
    let start: Ticks = format!("{year}-{month}-{day}T{hour}:00:00Z").parse().ok()?;
    let number: u32 = file.strip_suffix(".log")?.parse().ok()?;
    let parsed = LogBlobName::new(log, LogHour::hour_of(start), number);
    // Only one text is the name of a blob: no missing zero, no sign, no seventh part.
    (number > 0 && parsed.to_string() == name).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_name_of_a_log_is_refused() {
        for name in [
            "",
            "queue",
            "queue/2014/07/31/1800",
            "queue/2014/07/31/1800/",
            "queue/2014/07/31/1800/000000.log",
            "queue/2014/07/31/1800/00001.log",
            "queue/2014/07/31/1800/0000001.log",
            "queue/2014/07/31/1800/+00001.log",
            "queue/2014/07/31/1800/000001.LOG",
            "queue/2014/07/31/1800/000001.log/x",
            "queue/2014/07/31/1830/000001.log",
            "queue/2014/07/31/2400/000001.log",
            "queue/2014/02/30/1800/000001.log",
            "queue/2014/7/31/1800/000001.log",
            "queue/2014/07/31/1800/99999999999.log",
            "/queue/2014/07/31/1800/000001.log",
            "Queue/2014/07/31/1800/000001.log",
            "a.b/2014/07/31/1800/000001.log",
            "queue/2014/07/31/1800/00000\u{661}.log",
        ] {
            assert!(LogBlobName::parse(name).is_err_and(|error| error.is_invalid()), "{name}");
        }
        let many = LogBlobName::parse("queue/2014/07/31/1800/1000000.log");
        assert_eq!(many.map(|name| name.number()).ok(), Some(1_000_000));
    }

    proptest! {
        #[test]
        fn a_name_is_parsed_to_what_it_was_made_of(
            log in "[a-z0-9_-]{1,63}", at in 0..=Ticks::MAX.get(), number in 1..=u32::MAX
        ) {
            let name = LogBlobName::new(&log, LogHour::hour_of(Ticks::new(at).unwrap()), number);
            prop_assert_eq!(LogBlobName::parse(&name.to_string()).unwrap(), name.clone());
            prop_assert_eq!(name.path().to_string(), name.to_string());
        }
    }
}
