//! Defines [`ETag`], the version of a row.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use crate::edm::Ticks;

/// The version of a row, which changes with every write. It is opaque, and goes back to the service
/// byte for byte as If-Match.
///
/// ```
/// use entable_core::{ETag, Ticks};
///
/// let text = "W/\"datetime'2021-05-26T15%3A48%3A25.77957Z'\"";
/// let at: Ticks = "2021-05-26T15:48:25.77957Z".parse()?;
/// assert_eq!(ETag::from_timestamp(at), ETag::from(text));
/// assert_eq!(ETag::from(text).to_string(), text);
/// # Ok::<(), entable_core::ParseTicksError>(())
/// ```
#[derive(Clone)]
pub struct ETag {
    version: Version,
    /// Where the row was read that has this version. Equal versions are equal wherever they were read.
    location: Location,
}

/// The place of an account where a row was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Location {
    /// The store itself, or an account's primary region.
    #[default]
    Primary,
    /// The read-only copy of an account in another region. It may lack the last minutes.
    Secondary,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Version {
    Ticks(Ticks),
    Text(Box<str>),
}

impl ETag {
    /// Returns the ETag that the service derives from a Timestamp.
    ///
    /// ```
    /// # use entable_core::{ETag, Ticks};
    /// let at: Ticks = "2021-05-26T15:48:25.77957Z".parse()?;
    /// assert_eq!(ETag::from_timestamp(at).timestamp(), Some(at));
    /// # Ok::<(), entable_core::ParseTicksError>(())
    /// ```
    pub const fn from_timestamp(timestamp: Ticks) -> Self {
        Self { version: Version::Ticks(timestamp), location: Location::Primary }
    }

    /// Returns where the row with this ETag was read.
    #[doc(hidden)]
    pub const fn location_read_from(&self) -> Location {
        self.location
    }

    /// Sets where the row with this ETag was read. Whatever copies a row's ETag keeps it.
    #[doc(hidden)]
    pub fn with_location_read_from(self, location: Location) -> Self {
        Self { location, ..self }
    }

    /// Returns the Timestamp that the service derived the ETag from, or `None` if the ETag has another form.
    ///
    /// Also accepts the emulator's form: the emulator writes zeros at the end of the time, the service leaves
    /// them out.
    ///
    /// ```
    /// # use entable_core::{ETag, Ticks};
    /// assert_eq!(ETag::from("W/\"another form\"").timestamp(), None);
    /// ```
    pub fn timestamp(&self) -> Option<Ticks> {
        match &self.version {
            Version::Ticks(ticks) => Some(*ticks),
            Version::Text(text) => time_in_etag(text),
        }
    }

    /// Returns whether the text is one weak ETag, `W/"..."` or `w/"..."`, the only kind that the service
    /// accepts as If-Match.
    ///
    /// ```
    /// # use entable_core::{ETag, Ticks};
    /// assert!(ETag::from("W/\"a\"").is_weak());
    /// assert!(!ETag::from("\"a\"").is_weak());
    /// assert!(!ETag::from("W/\"a\", W/\"b\"").is_weak(), "a list of two");
    /// ```
    pub fn is_weak(&self) -> bool {
        match &self.version {
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

impl PartialEq for ETag {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

impl Eq for ETag {}

impl Hash for ETag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.version.hash(state);
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
            _ => Self { version: Version::Text(text.into()), location: Location::Primary },
        }
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
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
