//! Defines [`ETag`], the version of a row.

use std::fmt;

use crate::edm::Ticks;

/// The version of a row, which changes with every write. It is opaque, and goes back to the service
/// byte for byte as If-Match.
///
/// ```
/// use entable::{ETag, Ticks};
///
/// let text = "W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\"";
/// let at: Ticks = "2021-05-26T15:48:25.77957Z".parse()?;
/// assert_eq!(ETag::from_timestamp(at), ETag::from(text));
/// assert_eq!(ETag::from(text).to_string(), text);
/// # Ok::<(), entable::ParseTicksError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ETag(Version);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Version {
    Ticks(Ticks),
    Text(Box<str>),
}

impl ETag {
    /// Returns the ETag that the service derives from a Timestamp.
    ///
    /// ```
    /// # use entable::{ETag, Ticks};
    /// let at: Ticks = "2021-05-26T15:48:25.77957Z".parse()?;
    /// assert_eq!(ETag::from_timestamp(at).timestamp(), Some(at));
    /// # Ok::<(), entable::ParseTicksError>(())
    /// ```
    pub const fn from_timestamp(timestamp: Ticks) -> Self {
        Self(Version::Ticks(timestamp))
    }

    /// Returns the Timestamp that the service derived the ETag from, or `None` if the ETag has another form.
    ///
    /// Also accepts the emulator's form: the emulator writes zeros at the end of the time, the service leaves
    /// them out.
    ///
    /// ```
    /// # use entable::{ETag, Ticks};
    /// assert_eq!(ETag::from("W/\"another form\"").timestamp(), None);
    /// ```
    pub fn timestamp(&self) -> Option<Ticks> {
        match &self.0 {
            Version::Ticks(ticks) => Some(*ticks),
            Version::Text(text) => time_in_etag(text),
        }
    }

    /// Returns whether the text is one weak ETag, `W/"..."` or `w/"..."`, the only kind that the service
    /// accepts as If-Match.
    ///
    /// ```
    /// # use entable::{ETag, Ticks};
    /// assert!(ETag::from("W/\"a\"").is_weak());
    /// assert!(!ETag::from("\"a\"").is_weak());
    /// assert!(!ETag::from("W/\"a\", W/\"b\"").is_weak(), "a list of two");
    /// ```
    pub fn is_weak(&self) -> bool {
        match &self.0 {
            Version::Ticks(_) => true,
            Version::Text(text) => {
                let rest = text.strip_prefix("W/\"").or_else(|| text.strip_prefix("w/\""));
                let tag = rest.and_then(|rest| rest.strip_suffix('"'));
                // A quote inside ends the ETag: `W/"a", W/"b"` is a list of two.
                tag.is_some_and(|tag| !tag.contains('"'))
            }
        }
    }
}

/// Returns the time in an ETag of the form that the service writes.
fn time_in_etag(text: &str) -> Option<Ticks> {
    let time = text.strip_prefix("W/\"datetime'")?.strip_suffix("'\"")?;
    time.replace("%3A", ":").parse().ok()
}

impl From<&str> for ETag {
    /// Keeps an ETag as the service sent it, without a check: printing gives the same text.
    fn from(text: &str) -> Self {
        match time_in_etag(text) {
            // An ETag goes back to the service byte for byte, so a text that would print
            // differently is kept.
            Some(ticks) if Self::from_timestamp(ticks).to_string() == text => {
                Self::from_timestamp(ticks)
            }
            _ => Self(Version::Text(text.into())),
        }
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Version::Ticks(ticks) => {
                let time = ticks.to_string().replace(':', "%3A");
                write!(f, "W/\"datetime'{time}'\"")
            }
            Version::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
